"""Streams of operations: live, resumed and replicated, as server-sent events."""
