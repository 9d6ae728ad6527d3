"""Reading tables, or parts of them, from Cassandra as Arrow."""
