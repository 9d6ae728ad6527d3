"""Verification of the files and topics that writers have produced, against the log."""
