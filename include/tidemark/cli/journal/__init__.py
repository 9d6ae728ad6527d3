"""``tidemark journal``, with one module per group of its commands."""
