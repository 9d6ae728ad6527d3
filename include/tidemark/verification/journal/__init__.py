"""Verification of journals: entities as the log's messages define them, against the rows of the tables."""
