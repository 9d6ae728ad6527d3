"""What a compaction policy is: which messages make which others obsolete.

A policy of another package is a ``LastOfKey``: it says what the key of a message is, and of every key the
last message stays. That is enough for the passes over the files, the proof and Spark's tasks, which are the
same for all of them. Policies do not see values unless they ask for the column, and never decide above the
watermark.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from tidemark.pipeline.kinds import POLICIES


@dataclass(frozen=True, slots=True)
class LastOfKey:
    """Of every key the last message stays; keys are told apart within a namespace."""

    columns: tuple[str, ...] = ()
    """The columns of the log that ``key_of`` looks at, beside id, t and namespace."""
    key_of: Callable[[pa.Table], pa.Array | pa.ChunkedArray] | None = None
    """The key of every message as binary, the same in every process and at every time. Null for a message
    that replaces nothing and stays. None instead of a function: a whole namespace is one key."""
    drops_tombstones: bool = False
    """Whether the last message of a key goes too, some time after, when it has no value."""

    def keys(self, messages: pa.Table) -> pa.Array | pa.ChunkedArray | None:
        """The keys of some messages, which have ``columns``; None where a namespace is one key."""
        return None if self.key_of is None else self.key_of(messages)


@dataclass(frozen=True, slots=True)
class JournalActions:
    """The actions of a journal decide: an append goes when a delete or a purge of its entity stays after
    it."""

    drops_tombstones: bool = False


Policy = LastOfKey | JournalActions


def policy_named(name: str) -> Policy:
    """The doing part of a policy; its package is imported."""
    kind = POLICIES.find(name)
    if kind.load is None:
        raise ValueError(f"policy `{name}` keeps everything: there is nothing to do by it")
    policy = kind.load()
    assert isinstance(policy, Policy), f"policy `{name}` declares {type(policy).__name__}"
    return policy
