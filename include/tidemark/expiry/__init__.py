"""Expiry: finds the entities that expired on days that are over, and sends purges for them to Kafka."""
