"""Dumps of a source: one object a line, validated as a stream."""
