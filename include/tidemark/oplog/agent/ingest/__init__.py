"""Ingest: operations arrive by UDP or HTTP, wait in a bounded queue, and are acknowledged by Kafka."""
