"""Keyspace and tables of a kafka-journal: made, migrated and refused under the original's own lock."""
