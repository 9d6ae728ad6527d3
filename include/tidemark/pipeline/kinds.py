"""What a source format and a compaction policy declare, and the names of them that a file may use.

The declaring part only: a policy's doing part is imported when a log is compacted, and a format's reader
imports what it needs when it is called. Kinds of writers and transforms, which have keys of their own in a
file, are in ``writers`` and ``transforms``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator

from tidemark.pipeline.extensions import ExtensionPoint

KAFKA_JOURNAL = "kafka-journal"
"""The format that a source has by default; the only one that a journal can be written from."""


@dataclass(frozen=True, slots=True)
class FormatKind:
    """A format that the messages of a source can have."""

    name: str
    read: Callable[[bytes], Mapping[str, Any]]
    """The document that a message's value is, for transforms: JSON values by field. Raises ``ValueError``
    with a short reason for a value that is none. Called for every message, so heavy imports belong at its
    first call."""
    policy: str = "latest"
    """The compaction policy of a pipeline that names none."""
    shapes_output: bool = True
    """Whether a writer with transforms keeps the format's name with its settings, so that a change of the
    format is noticed. The built-in formats read alike and do not."""


@dataclass(frozen=True, slots=True)
class PolicyKind:
    """A rule for what makes a message of the commit log obsolete."""

    name: str
    load: Callable[[], Any] | None
    """Gives the doing part, a ``tidemark.compaction.policies.policy.Policy``; imports it. None: nothing
    ever is."""
    formats: frozenset[str] | None = None
    """The source formats it understands; None for all."""

    @property
    def keeps_everything(self) -> bool:
        """Whether no message ever leaves the log."""
        return self.load is None


FORMATS = ExtensionPoint("tidemark.formats", FormatKind)
POLICIES = ExtensionPoint("tidemark.policies", PolicyKind)

FormatName = Annotated[str, AfterValidator(FORMATS.choose)]
PolicyName = Annotated[str, AfterValidator(POLICIES.choose)]


def compacting_policies() -> list[str]:
    """The names of the policies by which something can leave a log."""
    return [kind.name for kind in POLICIES.usable() if not kind.keeps_everything]
