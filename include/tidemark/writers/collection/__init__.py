"""The ``collection`` writer: rows by key in Cassandra that can be read as of any time."""
