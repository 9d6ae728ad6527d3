"""Writing many rows to Cassandra: encoding, statements and batches."""
