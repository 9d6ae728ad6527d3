"""Digests of rows by shard, and their sums.

What is here adds up: the digests of the parts of a binding, in any order and in any number, give those of the
binding.
"""

from collections.abc import Iterable, Sequence

from tidemark.collection.model.row import CollectionRow, canonical_bytes
from tidemark.outputs.model.digest import ShardDigest

ShardDigests = tuple[ShardDigest, ...]
"""One digest a shard, in their order: what ``TimeDigests`` holds for one time."""


def no_digests(shards: int) -> ShardDigests:
    """The digests of no rows."""
    return (ShardDigest(),) * shards


def digests_of(rows: Iterable[CollectionRow], shards: int) -> ShardDigests:
    """The digests of some rows."""
    by_shard: list[list[bytes]] = [[] for _ in range(shards)]
    for row in rows:
        by_shard[row.shard].append(canonical_bytes(row))
    return tuple(map(ShardDigest.of, by_shard))


def sum_of(parts: Iterable[Sequence[ShardDigest]], shards: int) -> ShardDigests:
    """The digests of all rows of some parts."""
    total = no_digests(shards)
    for part in parts:
        total = tuple(one + other for one, other in zip(total, part, strict=True))
    return total
