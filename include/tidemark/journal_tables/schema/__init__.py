"""The schema of a kafka-journal keyspace: created and migrated beside kafka-journal's own clients."""
