"""Digests of what a rendition holds at one time, by shard.

The digest of a shard is the number of its rows and the sum modulo 2^128 of a hash of each row's canonical
bytes. It does not depend on the order of the rows and counts a row that is there twice. Sums over shards
compare renditions with different numbers of shards. This module encodes no rows and stores no digests.
The hash and the choice of the shard are durable: changing either makes every stored digest wrong.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Self

from tidemark.outputs.errors import ShardsDiffer
from tidemark.outputs.model.output import Output

_MODULUS = 2**128


@dataclass(frozen=True, slots=True)
class ShardDigest:
    """The digest of some rows: how many, and the sum of their hashes."""

    count: int = 0
    total: int = 0

    @classmethod
    def of(cls, rows: Iterable[bytes]) -> Self:
        """The digest of rows in canonical bytes."""
        count = total = 0
        for row in rows:
            count += 1
            total += int.from_bytes(blake2b(row, digest_size=16).digest(), "big")
        return cls(count, total % _MODULUS)

    def __add__(self, other: "ShardDigest") -> "ShardDigest":
        return ShardDigest(self.count + other.count, (self.total + other.total) % _MODULUS)

    def __str__(self) -> str:
        return f"{self.count}:{self.total:032x}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """From its text."""
        count, total = text.split(":")
        return cls(int(count), int(total, 16))


@dataclass(frozen=True, slots=True)
class TimeDigests:
    """The digests of all shards of a rendition at one binding time: one control row, so all or none.

    Attributes:
        t: The binding's time.
        shards: One digest a shard, in their order.
    """

    t: int
    shards: tuple[ShardDigest, ...]

    @property
    def total(self) -> ShardDigest:
        """The digest of all rows, whatever their shards."""
        return sum(self.shards, ShardDigest())

    def to_json(self) -> str:
        """The control row."""
        return json.dumps({"t": self.t, "shards": [str(one) for one in self.shards]})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """From a control row."""
        row = json.loads(text)
        return cls(row["t"], tuple(ShardDigest.parse(one) for one in row["shards"]))


def shard_of(key: bytes, shards: int) -> int:
    """The shard of a key, by the CQL bytes of its columns."""
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big") % shards


def differing_shards(
    output: Output, number: int, committed: TimeDigests | None, computed: TimeDigests
) -> Sequence[int]:
    """The shards of which computing a time again gave other rows; empty where it may be written.

    It may be where no digest is committed yet, or where all are equal. Where any differs nothing may be
    written, in no shard: the rendition is tainted.
    """
    if committed is None:
        return ()
    if len(committed.shards) != len(computed.shards):
        counts = len(committed.shards), len(computed.shards)
        raise ShardsDiffer(output.pipeline, output.writer, number, computed.t, *counts)
    pairs = enumerate(zip(committed.shards, computed.shards, strict=True))
    return tuple(shard for shard, (before, now) in pairs if before != now)
