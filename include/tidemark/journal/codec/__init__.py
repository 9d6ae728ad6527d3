"""Encoding and decoding of actions: their Kafka records and the payloads of appends. Pure."""
