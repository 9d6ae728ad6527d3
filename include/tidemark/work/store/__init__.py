"""A work journal's tables in Cassandra."""
