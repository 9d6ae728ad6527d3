"""Sessions and statements for Cassandra. No Spark in here."""
