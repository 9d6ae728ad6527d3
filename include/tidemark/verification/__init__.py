"""Verification of what writers have delivered, against the commit log. Does not use Spark."""
