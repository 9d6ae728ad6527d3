"""Partitions of keys: the fast way is the same as Java's clients' way."""

from tidemark.kafka.partitioning import key_hash, partition_of

KEYS = [
    b"",
    b"a",
    b"video/x34cd",
    "größe/ü".encode(),
    b"\xff" * 1_025,
    *(b"order-%d" % n for n in range(5_000)),
]


def test_the_partition_of_a_key_is_the_remainder_of_its_hash():
    for partitions in (1, 3, 4, 64):
        assert [partition_of(key, partitions) for key in KEYS] == [key_hash(key) % partitions for key in KEYS]
