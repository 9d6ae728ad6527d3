"""Actions as Kafka records and their payloads, in both directions. Pure."""
