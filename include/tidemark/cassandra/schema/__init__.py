"""Changes of a keyspace's schema, safe where several processes begin them at once."""
