"""Why a rendition may be trusted, or may not: the result of a verification, and of a recomputation that
differed.

Evidence is stored with the rendition and never edited. Whether it still holds is decided by comparing what it
was based on with what is so now; nothing here looks that up.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self


class VerificationMode(StrEnum):
    """How a rendition was compared with the active one.

    Attributes:
        EXACT: Both have the same visible state.
        EXPLAINED: Every difference matches a declared rule.
    """

    EXACT = "exact"
    EXPLAINED = "explained"


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """One of the two renditions that were compared, as it was then.

    Attributes:
        number: The rendition.
        position: Its position.
        acknowledged: The ids that were acknowledged for it instead of written, ascending.
        code: The digests of the modules it runs, by name.
    """

    number: int
    position: int
    acknowledged: tuple[int, ...] = ()
    code: Mapping[str, str] | None = None

    def changes(self, now: "ComparedSide") -> list[str]:
        """The fields that differ from how the rendition is now, in words."""
        if self.number != now.number:
            return [f"rendition {now.number} instead of {self.number}"]
        names = {
            "position": self.position == now.position,
            "acknowledged ids": self.acknowledged == now.acknowledged,
            "code": dict(self.code or {}) == dict(now.code or {}),
        }
        return [f"{name} of rendition {self.number}" for name, is_same in names.items() if not is_same]

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """From the entry of a control row."""
        return cls(row["number"], row["position"], tuple(row["acknowledged"]), row["code"])


@dataclass(frozen=True, slots=True)
class VerificationEvidence:
    """The result of a verification.

    Attributes:
        mode: How they were compared.
        t: The last time that was compared.
        candidate: The rendition that was verified.
        active: The active rendition that it was compared with.
        differences: How many rows differ.
        explained: How many of them match a declared rule.
    """

    mode: VerificationMode
    t: int
    candidate: ComparedSide
    active: ComparedSide
    differences: int = 0
    explained: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether no difference is left open; in mode ``exact``, whether there is none at all."""
        allowed = 0 if self.mode is VerificationMode.EXACT else self.explained
        return self.differences <= allowed

    def changes(self, candidate: ComparedSide, active: ComparedSide) -> tuple[str, ...]:
        """What has changed since the verification, in words. Any change revokes the evidence: also progress,
        because the rows that it brought were not compared."""
        return (*self.candidate.changes(candidate), *self.active.changes(active))

    def to_row(self) -> dict[str, Any]:
        """The entry of a control row."""
        return asdict(self)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """From the entry of a control row."""
        sides = (ComparedSide.from_row(row["candidate"]), ComparedSide.from_row(row["active"]))
        mode = VerificationMode(row["mode"])
        return cls(mode, row["t"], *sides, row["differences"], row["explained"])


@dataclass(frozen=True, slots=True)
class Taint:
    """Two results for one time: the committed one, which stays, and the one that was not written.

    Attributes:
        t: The binding time that was computed again.
        shard: The first shard that differs.
        committed: The digest of its committed rows.
        found: The digest of the rows that were not written.
        committed_code: The digests of the modules that computed the committed rows, by name.
        found_code: Those of the modules that computed the others.
    """

    t: int
    shard: int
    committed: str
    found: str
    committed_code: Mapping[str, str]
    found_code: Mapping[str, str]

    def to_row(self) -> dict[str, Any]:
        """The entry of a control row."""
        return asdict(self)
