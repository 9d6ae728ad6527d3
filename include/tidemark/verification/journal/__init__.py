"""Verification of journals: entities of the log against rows of the tables."""
