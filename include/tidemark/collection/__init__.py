"""Collections: rows by key that can be read as of any time between ``since`` and ``upper``."""
