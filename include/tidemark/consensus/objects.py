"""What consensus is: compare-and-set on versioned objects.

An object has a version and rows of text, all in one place, so that one transaction changes several rows at
once or none. Everything durable that decides something (a binding, the log's manifest, a writer's position)
is such an object. There is no blind write: who did not read the newest version changes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from tidemark.errors import TidemarkError, with_fields

ABSENT = 0
"""The version of an object that nobody has written yet."""


class ObjectKind(StrEnum):
    """The kinds of objects in the control plane."""

    BINDINGS = "bindings"
    LOG = "log"
    WRITER = "writer"
    WORK_JOURNAL = "work"
    WORK_ENTRY = "entry"


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """Which object: its kind and its name (``orders``, ``orders/archive``)."""

    kind: ObjectKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An object as it was at one version; only the rows that were asked for."""

    version: int
    rows: Mapping[str, str]


AFTER_EVERY_NAME = "\U0010ffff"
"""Comes after every name of a row: the end of a range that has none."""


@dataclass(frozen=True, slots=True)
class RowRange:
    """Rows by their names' order: ``first`` included, ``end`` not, however many are between them."""

    first: str
    end: str

    def __post_init__(self) -> None:
        if self.first >= self.end:
            raise ValueError(f"no row comes from {self.first!r} on and before {self.end!r}")

    def __contains__(self, row: str) -> bool:
        return self.first <= row < self.end


@dataclass(frozen=True, slots=True)
class Change:
    """What one transaction does: rows to write and rows to remove, one by one or whole ranges of them."""

    puts: Mapping[str, str] = field(default_factory=dict)
    deletes: Sequence[str] = ()
    ranges: Sequence[RowRange] = ()

    def __post_init__(self) -> None:
        if both := sorted(row for row in self.puts if self.removes(row)):
            raise ValueError(
                f"{both} are to be written and removed at once, and nobody knows which comes first"
            )

    def removes(self, row: str) -> bool:
        """Whether a row of this name is gone afterwards."""
        return row in self.deletes or any(row in gone for gone in self.ranges)

    def applied_to(self, rows: Mapping[str, str]) -> dict[str, str]:
        """An object's rows as the change leaves them."""
        return {row: body for row, body in rows.items() if not self.removes(row)} | dict(self.puts)


class ConsensusError(TidemarkError):
    """A change of the control plane was not made, or is not known to be."""


@with_fields
class Outpaced(ConsensusError):
    """Somebody else changed the object first; nothing of this change was applied.

    One exception: where the answer was lost and others have committed since, it may have been applied and
    written over. Reading again and deciding anew is right in both cases.
    """

    key: ObjectKey
    expected: int
    found: int

    text = (
        "{key}: changed by somebody else in the meantime (version {found}, not {expected}). Nothing was "
        "written; read it again and decide anew."
    )


@with_fields
class Undecided(ConsensusError):
    """The answer to a commit is missing, and what became of it could not be found out."""

    key: ObjectKey
    expected: int
    reason: str

    text = (
        "{key}: whether the change of version {expected} was applied is not known ({reason}); nothing else "
        "was done. Run the same step again: it first looks at what is there."
    )


class Consensus(Protocol):
    """Reads are linearizable, but for ``recent`` and ``committed``; a commit applies whole, at exactly the
    expected version, or raises ``Outpaced``. Only after ``Undecided`` it is not known which of them it was.
    """

    def read(self, key: ObjectKey, rows: Sequence[str]) -> Snapshot:
        """The named rows (those that exist) and the version they belong to."""

    def whole(self, key: ObjectKey) -> Snapshot:
        """Every row, and the version, in one read: for objects that never have more than a few."""

    def recent(self, kind: ObjectKind, names: Sequence[str]) -> Mapping[str, Snapshot]:
        """As ``whole`` of several objects of a kind, for less; by their names, without those that are absent.

        Each as it was at some version, the newest or a little before it. Good enough for a commit, which
        fails where it is not the newest; not for deciding against one.
        """

    def committed(self, key: ObjectKey, rows: Sequence[str]) -> Snapshot:
        """As ``read``, for less: it does not take part in the transactions on the object.

        Every commit that returned before this began is seen; one that is under way may be or not.
        """

    def scan(self, key: ObjectKey, prefix: str, *, before: str | None = None, limit: int = 1000) -> Snapshot:
        """The last rows, in order, whose names begin with ``prefix`` and come before ``before``."""

    def names(self, kind: ObjectKind, prefix: str = "") -> list[str]:
        """The names of the objects of a kind that begin so, in order; also of those that have no row left.

        Not linearizable: an object that is being made right now may be missing.
        """

    def commit(self, key: ObjectKey, expected: int, change: Change) -> int:
        """Apply the change if the object is still at ``expected``; the new version.

        Raises ``Outpaced`` when somebody else was faster, and ``Undecided`` when the answer is missing: then
        the change was applied, or was not, or still will be if nobody else is faster; whole and at most once
        in any case. Any other error is a refusal, and nothing was applied.
        """

    def forget(self, key: ObjectKey, expected: int) -> None:
        """Make the object absent with all its rows, if it is still at ``expected``; raises as ``commit``.

        Its versions begin anew. So this is only for objects that nobody has read for so long that nobody can
        still want to commit to what was read.
        """
