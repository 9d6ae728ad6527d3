"""``tidemark log``, with one module per group of its commands."""
