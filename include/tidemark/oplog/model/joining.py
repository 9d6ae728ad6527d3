"""How a client that is behind comes to follow the ring.

It may follow once the ring has everything that it does not have: what the ring keeps is complete from its
start. Before that, a reader reads the partitions in which the ring begins later than the client, up to where
the hub was when the read began. Then it is asked again: the ring may have moved on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.oplog.model.ring import Ring


@dataclass(frozen=True, slots=True)
class WantedRange:
    """Offsets of one partition to read: from ``first`` up to ``end``, which is not included."""

    partition: int
    first: int
    end: int


def missing_before(ring: Ring, vector: Sequence[int]) -> tuple[WantedRange, ...]:
    """What a reader has to read for a client before it can follow; nothing where it can."""
    return tuple(
        WantedRange(number, have, hub)
        for number, (have, start, hub) in enumerate(zip(vector, ring.start, ring.vector, strict=True))
        if have < start
    )
