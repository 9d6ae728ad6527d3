"""Declarations of source formats and compaction policies.

A policy's implementation is imported when a log is compacted, and a format's reader imports what it needs
when it is called. Kinds of writers and transforms, which have keys of their own in a file, are in ``writers``
and ``transforms``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator

from tidemark.kafka.topic_shape import TopicTimestamps
from tidemark.pipeline.extensions import ExtensionPoint

KAFKA_JOURNAL = "kafka-journal"
"""The format that a source has by default; the only one that a journal can be written from."""
OPLOG = "oplog"
"""The format of operations on objects, which a collection with the envelope ``oplog`` keeps."""


@dataclass(frozen=True, slots=True)
class FormatKind:
    """A format that the messages of a source can have.

    Attributes:
        name: The word in the file.
        read: Reads a message's value as a document for transforms: JSON values by field. Raises
            ``ValueError`` with a short reason where it cannot. Called for every message, so heavy imports
            belong to its first call.
        policy: The compaction policy of a pipeline that names none.
        shapes_output: Whether the format's name is part of the shape of writers with transforms, so that a
            change of it is refused. The built-in formats read values in the same way and set False.
        read_exactly: As ``read``, with every number as it is written, for writers with typed columns. None
            where ``read`` rounds no number and tells ``1`` from ``1.0``.
        has_fixed_partitions: Whether producers and readers compute the partitions of keys: a source has
            exactly one topic, by name, and a change of its partition count closes the log's gate.
        timestamps: The timestamps of topics that are created for it; None: the broker's default.
    """

    name: str
    read: Callable[[bytes], Mapping[str, Any]]
    policy: str = "latest"
    shapes_output: bool = True
    read_exactly: Callable[[bytes], Mapping[str, Any]] | None = None
    has_fixed_partitions: bool = False
    timestamps: TopicTimestamps | None = None


@dataclass(frozen=True, slots=True)
class PolicyKind:
    """A rule for what makes a message of the commit log obsolete.

    Attributes:
        name: The word in the file.
        load: Imports and returns the implementation, a ``tidemark.compaction.policies.policy.Policy``; None
            for a policy under which no message is ever obsolete.
        formats: The source formats it understands; None for all.
    """

    name: str
    load: Callable[[], Any] | None
    formats: frozenset[str] | None = None

    @property
    def keeps_everything(self) -> bool:
        """Whether no message ever leaves the log."""
        return self.load is None


FORMATS = ExtensionPoint("tidemark.formats", FormatKind)
POLICIES = ExtensionPoint("tidemark.policies", PolicyKind)

FormatName = Annotated[str, AfterValidator(FORMATS.choose)]
PolicyName = Annotated[str, AfterValidator(POLICIES.choose)]


def compacting_policies() -> list[str]:
    """The names of the policies that can remove messages from a log."""
    return [kind.name for kind in POLICIES.usable() if not kind.keeps_everything]
