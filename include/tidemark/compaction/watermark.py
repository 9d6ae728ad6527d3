"""The watermark: below it, and nowhere else, messages may leave the log.

The lowest of what every writer has finished, what somebody holds, what is old enough and where the active
segment begins. Pure: "now" is handed in and is the first time not yet bound, so a plan does not depend on
when it is looked at.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tidemark.log.model.binding import NOTHING_YET, Binding
from tidemark.log.model.manifest import Manifest
from tidemark.log.state.holds import Hold


class Reason(StrEnum):
    """What can hold the watermark back."""

    WRITER = "writer"
    """A writer has not finished with what comes next."""
    MIN_LAG = "min_lag"
    """What comes next is not old enough."""
    ACTIVE_SEGMENT = "active segment"
    """What comes next is in the segment that is not closed yet."""
    HOLD = "hold"
    """Somebody is in the middle of something and needs what comes next."""
    NO_WRITER = "no writer"
    """Nobody is registered, so nobody has finished with anything."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One reason why the watermark is not higher."""

    reason: Reason
    name: str
    """The writer's or the holder's; for the other reasons the reason itself."""
    below: int
    """Messages with ids below this one may go, as far as this reason is concerned."""
    ids: int
    """How many ids it withholds that would be old enough and outside the active segment, were it not for it.
    Of the reasons that are no writer's: how many of those that follow."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """Messages with ids strictly below ``id`` may go."""

    id: int
    limits: tuple[Limit, ...]
    """The lowest first."""

    @property
    def held_back_by(self) -> str:
        """The name of what holds it back most."""
        return self.limits[0].name

    @property
    def withheld(self) -> int:
        """How many ids that one withholds."""
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

    A message at a writer's position stays, although the writer has finished with it: it is the one that a
    reader finds there. A writer without a position blocks everything, and so does having no writer at all.
    """
    active = active_segment_begins(manifest)
    young = min((one.base for one in bindings if one.t > now - min_lag), default=manifest.end + 1)
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
    """The first id of the active segment; of an empty log the first id it will have."""
    if not manifest.segments:
        return manifest.end + 1 if manifest.end > NOTHING_YET else 0
    return min(file.first_id for file in manifest.segments[-1].files)
