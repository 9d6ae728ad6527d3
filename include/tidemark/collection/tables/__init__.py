"""The tables of a collection in Cassandra: created, written, and read as of a time."""
