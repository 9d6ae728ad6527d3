"""Whole tables, or parts of them, out of Cassandra as Arrow."""
