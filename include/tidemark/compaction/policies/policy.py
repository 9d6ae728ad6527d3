"""Compaction policies: which messages make which others obsolete.

A policy of another package is a ``LastOfKey``: it defines the key of a message, and the last message of every
key is kept. The passes over the files, the proof and Spark's tasks are the same for all of these. A policy
reads values only where it requests the column, and never decides above the watermark.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from tidemark.pipeline.kinds import POLICIES


@dataclass(frozen=True, slots=True)
class LastOfKey:
    """Keeps the last message of every key; keys are unique within a namespace.

    Attributes:
        columns: The columns of the log that ``key_of`` reads, beside id, t and namespace.
        key_of: Returns the binary key of every message. It must be deterministic across processes. A message
            with a null key is always kept. None instead of a function: a whole namespace is one key.
        drops_tombstones: Whether a last message without a value is dropped after the time ``tombstones``.
    """

    columns: tuple[str, ...] = ()
    key_of: Callable[[pa.Table], pa.Array | pa.ChunkedArray] | None = None
    drops_tombstones: bool = False

    def keys(self, messages: pa.Table) -> pa.Array | pa.ChunkedArray | None:
        """The keys of messages, which must have ``columns``; None where a namespace is one key."""
        return None if self.key_of is None else self.key_of(messages)


@dataclass(frozen=True, slots=True)
class JournalActions:
    """Drops the actions of a journal that later deletes and purges of the same entity make obsolete."""

    drops_tombstones: bool = False


@dataclass(frozen=True, slots=True)
class ValidOperations:
    """Drops void corrections, then all but the newest valid operation of each object. Deletes are
    operations."""

    drops_tombstones: bool = False


Policy = LastOfKey | JournalActions | ValidOperations


def policy_named(name: str) -> Policy:
    """The implementation of a policy; imports its package. Raises ``ValueError`` for ``none``."""
    kind = POLICIES.find(name)
    if kind.load is None:
        raise ValueError(f"policy `{name}` keeps everything: there is nothing to do by it")
    policy = kind.load()
    assert isinstance(policy, Policy), f"policy `{name}` declares {type(policy).__name__}"
    return policy
