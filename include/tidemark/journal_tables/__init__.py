"""kafka-journal's keyspace: statements, cells, heads, rows and schema, for everything that uses it."""
