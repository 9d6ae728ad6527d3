"""A difference between the expected and the stored content of a journal, as fields and as a sentence."""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class DifferenceKind(StrEnum):
    """The kinds of differences. Their values are part of the JSON output."""

    HEAD_MISSING = "head missing"
    HEAD_EXTRA = "head extra"
    HEAD_DIFFERS = "head differs"
    ROW_MISSING = "row missing"
    ROW_EXTRA = "row extra"
    ROW_DIFFERS = "row differs"
    REPARTITIONED = "repartitioned"
    POINTER_MISSING = "pointer missing"
    POINTER_BEHIND = "pointer behind"
    POINTER_TOO_FAR = "pointer too far"

    @property
    def is_about_pointer(self) -> bool:
        """Whether it concerns a partition's pointer instead of an entity."""
        return self in (self.POINTER_MISSING, self.POINTER_BEHIND, self.POINTER_TOO_FAR)


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. The fields that do not apply to its kind are None or empty."""

    kind: DifferenceKind
    topic: str
    key: str | None = None
    """The entity's key; None for a pointer."""
    partition: int | None = None
    seq_nr: int | None = None
    timestamp: int | None = None
    columns: tuple[str, ...] = ()
    """The columns that differ."""
    expected: int | str | None = None
    found: int | str | None = None
    detail: str = ""
    """Further details, appended to the sentence in parentheses."""

    @property
    def where(self) -> str:
        """The entity or the partition, as text."""
        return (
            f"{self.topic}/{self.partition}"
            if self.key is None
            else f"{self.topic}: {self.key or '(empty key)'}"
        )

    @property
    def what(self) -> str:
        """The sentence without the entity or partition."""
        return f"{self._sentence()} ({self.detail})" if self.detail else self._sentence()

    def _sentence(self) -> str:
        columns, found = ", ".join(self.columns), "nothing" if self.found is None else self.found
        expected = "nothing" if self.expected is None else self.expected
        match self.kind:
            case DifferenceKind.HEAD_MISSING:
                return f"the head is missing; it should be at event {expected}"
            case DifferenceKind.HEAD_EXTRA:
                return f"there is a head at event {found}, and there should be no such entity"
            case DifferenceKind.HEAD_DIFFERS:
                return f"{columns} of the head is {found} instead of {expected}"
            case DifferenceKind.ROW_MISSING:
                return f"event {self.seq_nr} is missing"
            case DifferenceKind.ROW_EXTRA:
                return f"event {self.seq_nr} is there and should not be"
            case DifferenceKind.ROW_DIFFERS:
                return f"event {self.seq_nr} was changed: {columns}"
            case DifferenceKind.REPARTITIONED:
                return f"it is in partitions {expected} and {found}, and readers get one of them at most"
            case DifferenceKind.POINTER_MISSING:
                return f"pointer2 has no offset; it should be {expected}"
            case DifferenceKind.POINTER_BEHIND:
                return f"pointer2 is behind: {found} instead of {expected}"
            case DifferenceKind.POINTER_TOO_FAR:
                return f"pointer2 is too far: {found} instead of {expected}; readers miss what is between"

    def between(self, old: str, new: str) -> str:
        """The sentence for a comparison of two keyspaces, neither of which is known to be right.

        ``old`` names the keyspace of the expected state, ``new`` that of the found one.
        """
        columns = ", ".join(self.columns)
        match self.kind:
            case DifferenceKind.HEAD_MISSING:
                return f"only {old} has it, at event {self.expected}"
            case DifferenceKind.HEAD_EXTRA:
                return f"only {new} has it, at event {self.found}"
            case DifferenceKind.HEAD_DIFFERS:
                return f"{columns} of the head is {self.expected} in {old} and {self.found} in {new}"
            case DifferenceKind.ROW_MISSING:
                return f"event {self.seq_nr} is only in {old}"
            case DifferenceKind.ROW_EXTRA:
                return f"event {self.seq_nr} is only in {new}"
            case DifferenceKind.ROW_DIFFERS:
                return f"event {self.seq_nr} is not the same: {columns}"
            case _:
                return self.what

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON object that ``--json`` prints."""
        given = {name: value for name, value in asdict(self).items() if value not in (None, (), "")}
        return {**given, "kind": self.kind.value, "said": str(self)}
