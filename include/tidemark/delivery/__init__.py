"""Pipelines, connections, and how far each writer has come."""
