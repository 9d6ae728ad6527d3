"""Delivery of the published log to a pipeline's writers: positions, gates, dead letters, actions."""
