"""Entities that begin in more than one Kafka partition of a binding: no task can notice that alone.

Where an entity has its state already, whoever comes from another partition sees it. Where it has none, each
task begins it, and the last one wins. So parts say which entities they began, eight bytes each, and whoever
waited for all of them compares. Two keys may have the same eight bytes: a reason to look again, no more.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BYTES_AN_ENTITY = 8


class Begun(NamedTuple):
    """The entities that a part began for one Kafka partition."""

    topic: str
    partition: int
    entities: bytes


def begun(topic: str, partition: int, keys: Iterable[str]) -> tuple[Begun, ...]:
    """What a part says of the entities it began; nothing where it began none."""
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
    """One partition's, each once: a part that wrote its heads early may name one again."""
    found = np.sort(np.frombuffer(b"".join(parts), np.uint64))  # ``np.unique`` takes many times as long
    is_first = np.ones(len(found), np.bool_)
    is_first[1:] = found[1:] != found[:-1]
    return found[is_first]
