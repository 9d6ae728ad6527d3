"""``tidemark journal``: one module per group of its commands."""
