"""Entities that begin in more than one Kafka partition of a binding, which a single task cannot detect.

A task sees the state that an entity already has. Where there is none yet, several tasks may begin the same
entity, and the last one wins. Parts therefore report the entities that they began, as eight bytes each, and
the delivery compares the reports of all parts. On a hash collision the binding is written a second time
without need, which is harmless.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BYTES_AN_ENTITY = 8


class Begun(NamedTuple):
    """The entities that a part began for one Kafka partition.

    Attributes:
        topic: The partition's topic.
        partition: The partition's number.
        entities: An eight-byte hash of each entity's key, concatenated.
    """

    topic: str
    partition: int
    entities: bytes


def begun(topic: str, partition: int, keys: Iterable[str]) -> tuple[Begun, ...]:
    """A part's report of the entities that it began; empty where it began none."""
    digests = b"".join(blake2b(key.encode(), digest_size=BYTES_AN_ENTITY).digest() for key in keys)
    return (Begun(topic, partition, digests),) if digests else ()


def is_any_split(parts: Iterable[Begun]) -> bool:
    """Whether an entity may have begun in two partitions of a topic."""
    topics: dict[str, dict[int, list[bytes]]] = {}
    for topic, partition, entities in parts:
        topics.setdefault(topic, {}).setdefault(partition, []).append(entities)
    return any(_share_any(list(partitions.values())) for partitions in topics.values())


def _share_any(partitions: list[list[bytes]]) -> bool:
    if len(partitions) < 2:
        return False
    found = np.concatenate([_different(parts) for parts in partitions])
    found.sort()
    return bool((found[1:] == found[:-1]).any())


def _different(parts: list[bytes]) -> NDArray[np.uint64]:
    """The entities of one partition, each once: a part that wrote its heads early reports some twice."""
    found = np.sort(np.frombuffer(b"".join(parts), np.uint64))  # ``np.unique`` takes many times as long
    is_first = np.ones(len(found), np.bool_)
    is_first[1:] = found[1:] != found[:-1]
    return found[is_first]
