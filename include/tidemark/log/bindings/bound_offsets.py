"""How far each partition was bound at a time: the offsets that a log, or an output, has up to then."""

from collections.abc import Iterable, Mapping

from tidemark.log.bindings.door import Bindings
from tidemark.log.model.binding import Binding, TopicPartition
from tidemark.log.state.control import LogControl


def offsets_bound_at(control: LogControl, t: int) -> dict[TopicPartition, int]:
    """The first offset of every partition that the bindings up to ``t`` do not have.

    A partition that was never bound is missing.
    """
    reached = control.bindings_head().reached
    return first_not_bound(reached, Bindings(control).younger(t))


def first_not_bound(
    reached: Mapping[TopicPartition, int], younger: Iterable[Binding]
) -> dict[TopicPartition, int]:
    """The first offset of every partition that only ``younger`` bindings have, or none.

    ``reached`` has the next offset to bind of each partition.
    """
    found = dict(reached)
    for binding in younger:
        for s in binding.slices:
            place = (s.topic, s.partition)
            found[place] = min(s.lower, found.get(place, s.lower))
    return found
