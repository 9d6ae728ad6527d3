"""Whether a writer has delivered the purges of a run, which first have to be bound and published."""

from collections.abc import Iterable, Mapping, Sequence

from tidemark.delivery.state.positions import Positions
from tidemark.expiry.overtaken_appends import SentPurge
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.binding import NOTHING_YET, Binding, TopicPartition
from tidemark.log.state.control import LogControl


def last_offsets(sent: Iterable[SentPurge]) -> dict[TopicPartition, int]:
    """The offset of the last purge in each partition."""
    found: dict[TopicPartition, int] = {}
    for one in sent:
        place = (one.topic, one.partition)
        found[place] = max(one.offset, found.get(place, one.offset))
    return found


def not_passed(
    wanted: Mapping[TopicPartition, int],
    reached: Mapping[TopicPartition, int],
    beyond: Sequence[Binding],
    position: int,
) -> dict[TopicPartition, int]:
    """The offsets of ``wanted`` that a writer at ``position`` has not delivered.

    ``reached`` has the next offset to bind of each partition, ``beyond`` the bindings above the position.
    """
    waiting = {}
    for place, offset in wanted.items():
        is_bound = reached.get(place, 0) > offset
        finished = [binding.offsets_at(position).get(place) for binding in beyond]
        for binding, last in zip(beyond, finished, strict=True):
            for s in binding.slices:
                if (s.topic, s.partition) == place and s.lower <= offset and (last is None or last < offset):
                    is_bound = False
        if not is_bound:
            waiting[place] = offset
    return waiting


def read_not_passed(
    control: LogControl, positions: Positions, writer: str, wanted: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """The offsets of ``wanted`` that the writer has not delivered now."""
    state = positions.load(writer)
    position = state.position if state else NOTHING_YET
    # Read after the position, so that a binding made meanwhile counts as not delivered.
    reached = control.bindings_head().reached
    return not_passed(wanted, reached, list(Bindings(control).after(position)), position)
