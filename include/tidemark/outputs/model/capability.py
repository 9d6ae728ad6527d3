"""Readers, and the times that they hold.

A capability at *t* keeps ``since`` below *t*, so that its reader can read every time from *t* on, and the
changes at *t* itself. It moves forward only. With a deadline it is a lease: its holder stops using it at the
deadline, and it is removed 10 s later, which covers clocks that differ by less. Without one it is a pin.
No function here reads a clock: ``now`` is in µs and supplied by the caller.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from tidemark.outputs.reader_errors import (
    CapabilityMovedBack,
    Forgotten,
    ReaderExpired,
    ReaderNameTaken,
    StillNeeded,
)

GRACE = 10_000_000
"""How long after its deadline a capability is removed, in µs."""


@dataclass(frozen=True, slots=True)
class Capability:
    """The right of one reader to times from ``t`` on.

    Attributes:
        reader: The reader's id.
        t: The first time that it may ask for.
        deadline: When its holder stops using it unless it is renewed, in µs; None for a pin.
        who: The process or operator that holds it, for messages.
    """

    reader: str
    t: int
    deadline: int | None
    who: str

    def is_usable_at(self, now: int) -> bool:
        """Whether its holder may rely on it without asking the control plane."""
        return self.deadline is None or now < self.deadline

    def is_expired_at(self, now: int) -> bool:
        """Whether it may be removed; until then it can be renewed."""
        return self.deadline is not None and now >= self.deadline + GRACE

    def to_row(self) -> dict[str, Any]:
        """The control row."""
        return asdict(self)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """From a control row."""
        return cls(**row)


@dataclass(frozen=True, slots=True)
class Readers:
    """The readers of one writer's output.

    Attributes:
        pipeline: The pipeline's name.
        writer: The writer's name.
        since: The first time that a new reader may ask for. It never goes back.
        capabilities: By the reader's id.
    """

    pipeline: str
    writer: str
    since: int
    capabilities: Mapping[str, Capability]

    def held_by(self, reader: str, now: int) -> Capability:
        """A reader's capability; raises ``ReaderExpired`` where it has none any more."""
        capability = self.capabilities.get(reader)
        if capability is None or capability.is_expired_at(now):
            raise ReaderExpired(self.pipeline, self.writer, reader)
        return capability

    def earliest(self, now: int) -> Capability | None:
        """The capability that holds the oldest time; None without readers."""
        held = (one for one in self.capabilities.values() if not one.is_expired_at(now))
        return min(held, key=lambda one: (one.t, one.reader), default=None)


def register(readers: Readers, capability: Capability) -> Readers:
    """Add a reader. Repeating it changes nothing; the id of another reader is refused."""
    if (known := readers.capabilities.get(capability.reader)) is not None:
        if known == capability:
            return readers
        raise ReaderNameTaken(readers.pipeline, readers.writer, known.reader, known.who)
    if capability.t < readers.since:
        raise Forgotten(readers.pipeline, readers.writer, capability.t, readers.since)
    return _with(readers, capability)


def pin(readers: Readers, reader: str, t: int, who: str) -> Readers:
    """Hold a time without deadline, until it is dropped."""
    return register(readers, Capability(reader, t, None, who))


def renew(readers: Readers, reader: str, deadline: int, now: int) -> Readers:
    """Move a reader's deadline forward; an earlier one, and a pin, stay as they are."""
    held = readers.held_by(reader, now)
    if held.deadline is None or deadline <= held.deadline:
        return readers
    return _with(readers, replace(held, deadline=deadline))


def move_forward(readers: Readers, reader: str, t: int, now: int) -> Readers:
    """Give up the times before ``t``."""
    held = readers.held_by(reader, now)
    if t < held.t:
        raise CapabilityMovedBack(readers.pipeline, readers.writer, reader, held.t, t)
    return _with(readers, replace(held, t=t))


def drop(readers: Readers, reader: str) -> Readers:
    """End a reader or a pin. Repeating it changes nothing."""
    return replace(readers, capabilities=_without(readers, {reader}))


def expire(readers: Readers, now: int) -> Readers:
    """Remove the capabilities whose deadline and grace have passed."""
    over = {one.reader for one in readers.capabilities.values() if one.is_expired_at(now)}
    return replace(readers, capabilities=_without(readers, over)) if over else readers


def raise_since(readers: Readers, since: int, now: int) -> Readers:
    """Forget the times before ``since``, and remove expired readers in the same step.

    Raises ``StillNeeded`` where a capability is at ``since`` or below. At ``since`` itself, because its
    reader may still ask for the changes at that time, which need the state before it.
    """
    if since <= readers.since:
        return readers
    if (first := readers.earliest(now)) is not None and first.t <= since:
        raise StillNeeded(readers.pipeline, readers.writer, since, first.reader, first.who, first.t)
    return replace(expire(readers, now), since=since)


def _with(readers: Readers, capability: Capability) -> Readers:
    return replace(readers, capabilities={**readers.capabilities, capability.reader: capability})


def _without(readers: Readers, gone: set[str]) -> dict[str, Capability]:
    return {reader: one for reader, one in readers.capabilities.items() if reader not in gone}
