"""The declarations of the built-in compaction policies. Imports neither Arrow nor compaction code."""

from typing import TYPE_CHECKING

from tidemark.pipeline.kinds import KAFKA_JOURNAL, PolicyKind

if TYPE_CHECKING:
    from tidemark.compaction.policies.policy import JournalActions, LastOfKey


def _journal() -> "JournalActions":
    from tidemark.compaction.policies.policy import JournalActions

    return JournalActions()


def _latest() -> "LastOfKey":
    from tidemark.compaction.policies.policy import LastOfKey

    return LastOfKey(("key",), lambda messages: messages["key"], drops_tombstones=True)


def _progress() -> "LastOfKey":
    from tidemark.compaction.policies.policy import LastOfKey

    return LastOfKey()


JOURNAL = PolicyKind("journal", _journal, frozenset({KAFKA_JOURNAL}))
LATEST = PolicyKind("latest", _latest)
PROGRESS = PolicyKind("progress", _progress)
NONE = PolicyKind("none", None)
