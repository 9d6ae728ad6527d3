"""Proof that a journal keyspace holds what the commit log says. Changes nothing, knows no Spark."""
