"""The schema of a kafka-journal keyspace: creation and migration, safe beside kafka-journal's own clients."""
