"""The interface of consensus: compare-and-set on versioned objects.

An object has a version and rows of text. One transaction changes several rows of an object, all or none. All
durable decisions (a binding, the log's manifest, a writer's position) are stored in such objects. There is no
blind write: a change that is not based on the newest version is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from tidemark.errors import TidemarkError, with_fields

ABSENT = 0
"""The version of an object that was never written."""


class ObjectKind(StrEnum):
    """The kinds of objects in the control plane.

    Attributes:
        BINDINGS: The bindings of a pipeline.
        LOG: The log of a pipeline.
        WRITER: One writer of a pipeline.
        FOLLOWED: Whether a pipeline is followed.
        OUTPUT: The renditions of one writer's output, and its handovers.
        READERS: The readers of one writer's output. Apart from it, because a thousand readers that renew must
            not compete with deliveries.
        WORK_JOURNAL: A work journal.
        WORK_ENTRY: One entry of a work journal.
    """

    BINDINGS = "bindings"
    LOG = "log"
    WRITER = "writer"
    FOLLOWED = "followed"
    OUTPUT = "output"
    READERS = "readers"
    WORK_JOURNAL = "work"
    WORK_ENTRY = "entry"


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """The key of an object: its kind and its name (``orders``, ``orders/archive``)."""

    kind: ObjectKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The rows of an object at one version; only those that were requested."""

    version: int
    rows: Mapping[str, str]


AFTER_EVERY_NAME = "\U0010ffff"
"""Sorts after every row name: the end of a range without an upper bound."""


@dataclass(frozen=True, slots=True)
class RowRange:
    """All rows whose names sort from ``first`` (included) to ``end`` (excluded)."""

    first: str
    end: str

    def __post_init__(self) -> None:
        if self.first >= self.end:
            raise ValueError(f"no row comes from {self.first!r} on and before {self.end!r}")

    def __contains__(self, row: str) -> bool:
        return self.first <= row < self.end


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of one transaction.

    Attributes:
        puts: Rows to write, by name.
        deletes: Names of rows to remove.
        ranges: Ranges of rows to remove. No row may be both written and removed.
    """

    puts: Mapping[str, str] = field(default_factory=dict)
    deletes: Sequence[str] = ()
    ranges: Sequence[RowRange] = ()

    def __post_init__(self) -> None:
        if both := sorted(row for row in self.puts if self.removes(row)):
            raise ValueError(f"{both} are to be written and removed in one change, whose order is undefined")

    def removes(self, row: str) -> bool:
        """Whether the change removes a row of this name."""
        return row in self.deletes or any(row in removed for removed in self.ranges)

    def applied_to(self, rows: Mapping[str, str]) -> dict[str, str]:
        """The rows of an object after the change."""
        return {row: body for row, body in rows.items() if not self.removes(row)} | dict(self.puts)


class ConsensusError(TidemarkError):
    """A change of the control plane was not applied, or it is unknown whether it was."""


@with_fields
class Outpaced(ConsensusError):
    """Another process changed the object first; nothing of this change was applied.

    One exception: where the response was lost and other processes have committed since, the change may have
    been applied and overwritten. Reading and deciding again is right in both cases.
    """

    key: ObjectKey
    expected: int
    found: int

    text = (
        "{key}: changed by another process in the meantime (version {found}, not {expected}). Nothing was "
        "written; read it again and decide anew."
    )


@with_fields
class Undecided(ConsensusError):
    """The response to a commit is missing, and its outcome could not be determined."""

    key: ObjectKey
    expected: int
    reason: str

    text = (
        "{key}: whether the change of version {expected} was applied is not known ({reason}); nothing else "
        "was done. Run the same step again: it begins by reading the current state."
    )


class Consensus(Protocol):
    """Versioned objects with compare-and-set.

    Reads are linearizable, except ``recent`` and ``committed``. A commit is applied as a whole, at exactly
    the expected version, or raises ``Outpaced``. After ``Undecided`` its outcome is unknown.
    """

    def read(self, key: ObjectKey, rows: Sequence[str]) -> Snapshot:
        """Those of the named rows that exist, and the object's version."""

    def whole(self, key: ObjectKey) -> Snapshot:
        """All rows and the version in one read: for objects with few rows."""

    def recent(self, kind: ObjectKind, names: Sequence[str]) -> Mapping[str, Snapshot]:
        """All rows of several objects of a kind, by name; cheaper than ``whole``. Absent objects are left
        out.

        Each snapshot is of the newest version or of a recent one. That is enough for a commit, which fails
        where the version is not the newest. It is not enough for deciding not to commit.
        """

    def committed(self, key: ObjectKey, rows: Sequence[str]) -> Snapshot:
        """As ``read``, but cheaper: it does not take part in the transactions on the object.

        Sees every commit that returned before this call. A commit in progress may be seen or not.
        """

    def scan(
        self,
        key: ObjectKey,
        prefix: str,
        *,
        since: str | None = None,
        before: str | None = None,
        limit: int = 1000,
        first: bool = False,
    ) -> Snapshot:
        """The last ``limit`` rows whose names begin with ``prefix``, in order; with ``first`` the first ones.

        Only rows that sort at or after ``since`` and before ``before``. Rows below ``since`` are not even
        looked at: that matters where many of them were removed, which Cassandra reads like present ones.
        """

    def names(self, kind: ObjectKind, prefix: str = "") -> list[str]:
        """The sorted names of the objects of a kind that begin with ``prefix``, including objects without
        rows.

        Not linearizable: an object that is being created at the same time may be missing.
        """

    def commit(self, key: ObjectKey, expected: int, change: Change) -> int:
        """Apply the change if the object is still at version ``expected``; returns the new version.

        Raises ``Outpaced`` where another process changed the object first. Raises ``Undecided`` where the
        response is missing: the change was applied, or was not, or may still be applied unless another change
        precedes it; as a whole and at most once in any case. Any other error means that nothing was applied.
        """

    def forget(self, key: ObjectKey, expected: int) -> None:
        """Remove the object with all its rows, if it is still at version ``expected``; raises as ``commit``.

        Its versions start from the beginning again. So use this only for objects that no process has read for
        so long that none can still commit against the version it has read.
        """
