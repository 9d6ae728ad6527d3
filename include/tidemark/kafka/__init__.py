"""Kafka: the only package that imports a Kafka client."""
