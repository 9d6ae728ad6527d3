"""Cassandra: sessions, schemas, bulk writes and scans. Imports no Spark."""
