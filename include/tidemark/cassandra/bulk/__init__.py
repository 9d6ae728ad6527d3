"""Many rows into Cassandra: cells, statements and batches."""
