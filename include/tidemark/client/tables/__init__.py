"""A journal's tables in Cassandra, as clients read them."""
