"""Tidemark keeps a journal that lives in Kafka durable and queryable in Cassandra."""
