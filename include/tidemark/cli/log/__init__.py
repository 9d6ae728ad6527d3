"""``tidemark log``: one module per group of its commands."""
