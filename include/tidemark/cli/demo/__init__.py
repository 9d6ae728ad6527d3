"""``make demo``: from nothing to replicated data, one module per part."""
