"""bind: decide which offsets belong to the next binding, and make that decision durable.

After this step no code reads a clock or asks Kafka what is newest. Two binders may race: one wins, and both
go on with the winner's row.
"""

from collections.abc import Mapping
from enum import StrEnum

from tidemark.consensus.objects import Outpaced
from tidemark.errors import TidemarkError
from tidemark.log.binding import NOTHING_YET, Binding, Offsets, TopicPartition, cut_slices, next_time
from tidemark.log.control import LogControl

MAX_CLOCK_DIFFERENCE = 10_000_000
"""µs. Write timestamps come from ``t``: a clock far ahead would hide other writers' newer data."""


class ClockOff(TidemarkError):
    """This machine's clock and Cassandra's are too far apart to hand out write timestamps."""

    def __init__(self, pipeline: str, difference: int) -> None:
        super().__init__(
            f"{pipeline}: this machine's clock is {difference / 1e6:+.1f} s away from Cassandra's. "
            "Nothing was bound. Synchronise the clocks (at most 10 s are allowed) and run again."
        )
        self.pipeline, self.difference = pipeline, difference


class Loss(StrEnum):
    """How offsets that belong to the log can be gone."""

    RETENTION = "retention"
    TRUNCATED = "truncated"


class OffsetsLost(TidemarkError):
    """Kafka no longer has what the log still needs from it."""

    def __init__(
        self, pipeline: str, place: TopicPartition, loss: Loss, bound: int, offsets: Offsets
    ) -> None:
        topic, partition = place
        what = {
            Loss.RETENTION: f"offsets {bound} to {offsets.earliest - 1} were removed before their capture",
            Loss.TRUNCATED: f"it ends at {offsets.latest}, but offsets below {bound} are bound already",
        }[loss]
        super().__init__(
            f"{pipeline}: {topic}/{partition} has lost records: {what}. Nothing was bound. "
            "Restore the topic, or find out why it was changed before going on."
        )
        self.pipeline, self.topic, self.partition, self.loss = pipeline, topic, partition, loss


def refuse_loss(
    pipeline: str, reached: Mapping[TopicPartition, int], available: Mapping[TopicPartition, Offsets]
) -> None:
    """Refuse to bind over a hole that nobody has seen yet."""
    for place, offsets in available.items():
        bound = reached.get(place)
        if bound is None:
            continue
        if offsets.earliest > bound:
            raise OffsetsLost(pipeline, place, Loss.RETENTION, bound, offsets)
        if offsets.latest < bound:
            raise OffsetsLost(pipeline, place, Loss.TRUNCATED, bound, offsets)


def refuse_clock(pipeline: str, ours: int, servers: int) -> None:
    """Refuse to hand out write timestamps by a clock that is off."""
    if abs(ours - servers) > MAX_CLOCK_DIFFERENCE:
        raise ClockOff(pipeline, ours - servers)


def find_unfinished(control: LogControl, run_id: str) -> Binding | None:
    """What has to be done before anything new: this run's own binding, else the oldest unpublished one."""
    if own := control.binding_of_run(run_id):
        return own
    head, log = control.bindings_head(), control.log_head()
    if head.newest is None or head.newest <= log.t:
        return None
    return control.bindings_after(log.end)[0]


def bind(
    control: LogControl, available: Mapping[TopicPartition, Offsets], limit: int, now: int, run_id: str
) -> Binding | None:
    """The binding this run shall work on; None when there is nothing new."""
    # Read before looking around: whatever is bound from here on makes the compare-and-set below fail.
    head = control.bindings_head()
    if unfinished := find_unfinished(control, run_id):
        return unfinished
    refuse_loss(control.pipeline, head.reached, available)
    previous = control.binding(head.newest) if head.newest is not None else None
    t = next_time(now, head.upper, previous)
    slices = cut_slices(head.reached, available, limit)
    try:
        if not slices:
            control.advance_upper(head, t)
            return None
        base = (previous.end if previous else NOTHING_YET) + 1
        binding = Binding(t, base, slices, run_id)
        control.add_binding(head, binding)
        return binding
    except Outpaced:
        return find_unfinished(control, run_id)
