"""Verification of files and topics against the log."""
