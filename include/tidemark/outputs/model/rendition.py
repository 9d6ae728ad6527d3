"""Renditions: complete versions of a writer's output, and the states that each goes through.

A rendition's number, settings, code and place never change, and no number is ever used again. This module
knows which states may follow each other; whether a step is allowed at a given moment is decided in
``lifecycle`` and ``handover``.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Any, Self

from tidemark.outputs.model.evidence import Taint, VerificationEvidence


class RenditionState(StrEnum):
    """The states of a rendition.

    Attributes:
        BUILDING: It is delivered to; readers do not know it.
        VERIFIED: It was compared with the active one; the evidence is stored with it.
        ACTIVE: Readers use it from its handover on.
        SUPERSEDED: Readers use another one now. It may become active again.
        RETIRING: Its times are forgotten; its place is being dropped.
        DROPPED: Its place is gone. The row stays, so that number and place are not used again.
        ABANDONED: Given up before it was ever active.
        TAINTED: Computing a time again gave other rows; it is frozen. Committed times stay readable.
    """

    BUILDING = "building"
    VERIFIED = "verified"
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    RETIRING = "retiring"
    DROPPED = "dropped"
    ABANDONED = "abandoned"
    TAINTED = "tainted"


_FOLLOWERS = {
    RenditionState.BUILDING: "verified active abandoned tainted",
    RenditionState.VERIFIED: "building verified active abandoned tainted",
    RenditionState.ACTIVE: "superseded tainted",
    RenditionState.SUPERSEDED: "active retiring tainted",
    RenditionState.TAINTED: "retiring",
    RenditionState.ABANDONED: "retiring",
    RenditionState.RETIRING: "dropped",
    RenditionState.DROPPED: "",
}

ALLOWED = {state: frozenset(map(RenditionState, after.split())) for state, after in _FOLLOWERS.items()}
"""The states that may follow each state. ``building`` to ``active`` is a forced handover, ``verified`` to
``building`` is evidence that no longer holds."""

GONE = frozenset({RenditionState.RETIRING, RenditionState.DROPPED})
"""The states in which a rendition answers no reader."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Who did something, why, and when (µs); the caller supplies the time."""

    who: str
    why: str
    at: int

    @property
    def is_complete(self) -> bool:
        """Whether both author and reason are given."""
        return bool(self.who.strip() and self.why.strip())


@dataclass(frozen=True, slots=True)
class Rendition:
    """One rendition of a writer's output.

    Attributes:
        number: 1, 2, …; never reused.
        state: Its state.
        settings: Everything that shapes its output, normalised. It goes on with these, also after
            a change of the file.
        code: The digests of the modules that its transforms run, by name.
        place: Its keyspace, path, topic or table; stored, and never derived again.
        since: The first time (µs) that it can answer for.
        signed: Who made it, and why.
        evidence: The newest verification; None before the first one and where it was revoked.
        taint: Set once it is tainted.
        abandoned: Who gave it up, and why; None where it was not.
        retired: Who took it out of use for good, and why; None where it was not.
        trimmed: Versions that no time from here on sees are removed; 0 before the first removal.
    """

    number: int
    state: RenditionState
    settings: Mapping[str, Any]
    place: str
    since: int
    signed: Signature
    code: Mapping[str, str] = field(default_factory=dict)
    evidence: VerificationEvidence | None = None
    taint: Taint | None = None
    abandoned: Signature | None = None
    retired: Signature | None = None
    trimmed: int = 0

    @property
    def settings_digest(self) -> str:
        """The SHA-256 of settings and code: equal exactly where the output would be."""
        return settings_digest(self.settings, self.code)

    def may_become(self, state: RenditionState) -> bool:
        """Whether the state may follow the present one."""
        return state in ALLOWED[self.state]

    def to_row(self) -> dict[str, Any]:
        """The control row."""
        return {
            "number": self.number,
            "state": str(self.state),
            "settings": dict(self.settings),
            "code": dict(self.code),
            "place": self.place,
            "since": self.since,
            "signed": asdict(self.signed),
            "evidence": self.evidence.to_row() if self.evidence else None,
            "taint": self.taint.to_row() if self.taint else None,
            "abandoned": asdict(self.abandoned) if self.abandoned else None,
            "retired": asdict(self.retired) if self.retired else None,
            "trimmed": self.trimmed,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """From a control row."""
        return cls(
            row["number"],
            RenditionState(row["state"]),
            row["settings"],
            row["place"],
            row["since"],
            Signature(**row["signed"]),
            row["code"],
            VerificationEvidence.from_row(row["evidence"]) if row["evidence"] else None,
            Taint(**row["taint"]) if row["taint"] else None,
            Signature(**row["abandoned"]) if row["abandoned"] else None,
            Signature(**row["retired"]) if row["retired"] else None,
            row.get("trimmed", 0),
        )


def settings_digest(settings: Mapping[str, Any], code: Mapping[str, str]) -> str:
    """The digest of settings and code, independent of the order of their keys."""
    text = json.dumps([settings, dict(code)], ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return sha256(text.encode()).hexdigest()
