"""Consumers of an agent's stream: they follow it over reconnects and restarts, and miss no operation.

Stands alone: httpx, msgspec, the errors and the fault points. Needs neither Kafka nor Cassandra.
"""
