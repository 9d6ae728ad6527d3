"""The watermark: only messages with ids below it can be dropped.

It is the lowest of these limits: every writer's position, every hold, the minimal age of messages, and the
beginning of the active segment. Pure: "now" is a parameter, the first time not yet bound, so a plan does not
depend on when it is computed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tidemark.log.model.binding import NOTHING_YET, Binding
from tidemark.log.model.manifest import Manifest
from tidemark.log.state.holds import Hold


class Reason(StrEnum):
    """The kinds of limits."""

    WRITER = "writer"
    """A writer has not delivered the next messages."""
    MIN_LAG = "min_lag"
    """The next messages are younger than ``min_lag``."""
    ACTIVE_SEGMENT = "active segment"
    """The next messages are in the active segment."""
    HOLD = "hold"
    """A running process needs the next messages."""
    NO_WRITER = "no writer"
    """No writer is registered, so no message is known to be delivered."""


@dataclass(frozen=True)
class Limit:
    """One limit of the watermark."""

    reason: Reason
    name: str
    """The writer's or the holder's name; for other reasons the reason itself."""
    below: int
    """The limit allows dropping messages with ids below this one."""
    ids: int
    """How many ids the limit withholds. For a writer or a hold: of the ids that are old enough and not in the
    active segment. For ``min_lag``: of those not in the active segment."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """Messages with ids strictly below ``id`` can be dropped; ``limits`` are sorted, the lowest first."""

    id: int
    limits: tuple[Limit, ...]

    @property
    def held_back_by(self) -> str:
        """The name of the lowest limit."""
        return self.limits[0].name

    @property
    def withheld(self) -> int:
        """How many ids the lowest limit withholds."""
        return self.limits[0].ids


def find_watermark(
    manifest: Manifest,
    positions: Mapping[str, int],
    bindings: Iterable[Binding],
    now: int,
    min_lag: int,
    holds: Iterable[Hold] = (),
) -> Watermark:
    """The watermark of a log; ``bindings`` are at least those younger than ``now - min_lag`` (both µs).

    They must be oldest first: the first of them decides, and no later one is read.

    The message at a writer's position is kept, although it is delivered: readers look it up by the position.
    A writer without a position blocks everything, and so does having no writer at all.
    """
    active = active_segment_begins(manifest)
    young = next((one.base for one in bindings if one.t > now - min_lag), manifest.end + 1)
    ceiling = min(active, young)
    limits = [
        Limit(Reason.WRITER, name, below, max(ceiling - below, 0))
        for name, position in sorted(positions.items())
        for below in [max(position, 0)]
    ]
    limits += [
        Limit(Reason.HOLD, one.holder, one.after + 1, max(ceiling - one.after - 1, 0)) for one in holds
    ]
    if not positions:
        limits.append(Limit(Reason.NO_WRITER, Reason.NO_WRITER, 0, ceiling))
    limits.append(Limit(Reason.MIN_LAG, Reason.MIN_LAG, young, max(active - young, 0)))
    limits.append(Limit(Reason.ACTIVE_SEGMENT, Reason.ACTIVE_SEGMENT, active, manifest.end + 1 - active))
    limits.sort(key=lambda limit: limit.below)
    return Watermark(limits[0].below, tuple(limits))


def active_segment_begins(manifest: Manifest) -> int:
    """The first id of the active segment; for an empty log, the first id it will have."""
    if not manifest.active.files:
        return manifest.end + 1 if manifest.end > NOTHING_YET else 0
    return manifest.active.first_id
