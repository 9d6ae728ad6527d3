"""The HTTP side of the agent: routing, access, limits, status, metrics and health."""
