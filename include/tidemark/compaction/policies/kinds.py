"""The declarations of the built-in compaction policies. Imports neither Arrow nor compaction code."""

from typing import TYPE_CHECKING

from tidemark.pipeline.kinds import KAFKA_JOURNAL, OPLOG, PolicyKind

if TYPE_CHECKING:
    from tidemark.compaction.policies.policy import JournalActions, LastOfKey, ValidOperations


def _journal() -> "JournalActions":
    from tidemark.compaction.policies.policy import JournalActions

    return JournalActions()


def _latest() -> "LastOfKey":
    from tidemark.compaction.policies.policy import LastOfKey

    return LastOfKey(("key",), lambda messages: messages["key"], drops_tombstones=True)


def _progress() -> "LastOfKey":
    from tidemark.compaction.policies.policy import LastOfKey

    return LastOfKey()


def _operations() -> "ValidOperations":
    from tidemark.compaction.policies.policy import ValidOperations

    return ValidOperations()


JOURNAL = PolicyKind("journal", _journal, frozenset({KAFKA_JOURNAL}))
LATEST = PolicyKind("latest", _latest)
PROGRESS = PolicyKind("progress", _progress)
OPERATIONS = PolicyKind("oplog", _operations, frozenset({OPLOG}))
NONE = PolicyKind("none", None)
