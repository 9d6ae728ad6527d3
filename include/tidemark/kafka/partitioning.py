"""The partition of a key as Kafka's own producers compute it."""

from functools import lru_cache

from kafka.partitioner.default import murmur2


@lru_cache(maxsize=65_536)
def key_hash(key: bytes) -> int:
    """The key's hash, not negative. The partition is its remainder modulo the number of partitions."""
    return int(murmur2(key)) & 0x7FFF_FFFF
