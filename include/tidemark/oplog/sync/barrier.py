"""What a comparison waits for: that the collection has everything that the topic had when it began.

Otherwise operations that were accepted and not delivered would look like differences. Decides, and never
waits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tidemark.client.collection.opened import OpenedCollection
from tidemark.log.bindings.bound_offsets import offsets_bound_at
from tidemark.log.state.control import LogControl
from tidemark.oplog.sync.errors import CollectionBehind
from tidemark.oplog.sync.kafka_operations import TopicState
from tidemark.outputs.errors import OutputMissing

NOTHING_BOUND = 0
"""The time of a comparison with a topic of which nothing was ever bound: there are no objects."""


@dataclass(frozen=True, slots=True)
class KnownOperations:
    """Which operations the collection has at a time.

    Attributes:
        t: The time, in µs.
        starts: The first offset of each partition that it does not have.
    """

    t: int
    starts: Mapping[int, int]

    def waiting(self, ends: Mapping[int, int]) -> dict[int, int]:
        """The ends that it has not reached, by partition."""
        return {number: end for number, end in sorted(ends.items()) if self.starts.get(number, 0) < end}


def newest_known(opened: OpenedCollection, control: LogControl, topic: TopicState) -> KnownOperations:
    """The newest time that can be read, and what the collection has then.

    Raises ``CollectionBehind`` where nothing can be read.
    """
    head = control.bindings_head()
    if head.newest is None:
        return KnownOperations(NOTHING_BOUND, topic.firsts)
    try:
        with opened.asking():
            output = opened.view.advanced()
    except OutputMissing:
        raise CollectionBehind(*opened.name, topic.ends) from None
    if output.frontier <= output.since:
        raise CollectionBehind(*opened.name, topic.ends)
    return known_at(control, topic, output.frontier - 1)


def known_at(control: LogControl, topic: TopicState, t: int) -> KnownOperations:
    """What the collection has at a time that was found by ``newest_known``."""
    bound = {} if t == NOTHING_BOUND else offsets_bound_at(control, t)
    starts = {number: bound.get((topic.topic, number), first) for number, first in topic.firsts.items()}
    return KnownOperations(t, starts)


def require_reached(opened: OpenedCollection, known: KnownOperations, ends: Mapping[int, int]) -> None:
    """Raise ``CollectionBehind`` where the collection does not have everything before these ends."""
    if waiting := known.waiting(ends):
        raise CollectionBehind(*opened.name, waiting)
