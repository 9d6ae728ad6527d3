"""Readers of collections: ``tidemark.Collection`` and what it consists of."""
