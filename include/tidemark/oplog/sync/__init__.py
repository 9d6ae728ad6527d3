"""Synchronisation of a topic of operations with a dump of its source: compare, then send what is missing."""
