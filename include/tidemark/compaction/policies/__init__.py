"""Compaction policies: which messages of a log can be dropped, one policy per module."""
