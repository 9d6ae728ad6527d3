"""The tail of a journal in Kafka, and the cache of what was read of it."""
