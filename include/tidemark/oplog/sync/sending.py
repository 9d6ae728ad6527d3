"""Sending corrections: which one is sent next, and which counts. A state machine; it reads and sends nothing.

The sender reads every partition from the offsets of the comparison on, and drops every correction whose
object it meets: another operation has overtaken it, or it was sent before. It reads on before every batch,
and each correction says how far its partition was read. Where something slips in between, readers find the
correction void, by the rule in ``operations.corrections``. What is void because too much came between is sent
again.

So a sender may be killed at any point and begin anew, and two may run at once: of all corrections that they
send about an object, at most one is valid, and none after an operation that the comparison does not know.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidemark.operations.corrections import Correction, is_void
from tidemark.operations.operation import ObjectOperation
from tidemark.operations.reading import RecordedOperation
from tidemark.oplog.sync.errors import CorrectionsVoided, OplogTopicChanged

AT_ONCE = 500
"""The corrections of a batch. In a larger one, more time passes between reading and sending."""
MOST_VOID = 20
"""After so many batches in a row of which nothing counts, the sender gives up."""

Place = tuple[int, int]
"""A partition and an offset in it."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A correction that is about to be sent.

    Attributes:
        operation: What it says.
        partition: The partition of its object.
        header: What its header says.
    """

    operation: ObjectOperation
    partition: int
    header: Correction


@dataclass(frozen=True, slots=True)
class Settled:
    """A correction that needs nothing more.

    Attributes:
        operation: What it says.
        place: Where it is, if it counts; else where the operation is that has overtaken it.
        is_sent: Whether it counts.
    """

    operation: ObjectOperation
    place: Place
    is_sent: bool


@dataclass(frozen=True, slots=True)
class SendingRules:
    """What a sender has to know about its run.

    Attributes:
        pipeline: The pipeline, for error texts.
        topic: The topic of the operations.
        topic_id: Kafka's id of the topic.
        run: The key of the synchronisation.
        starts: The first offset of each partition that the comparison does not know.
        at_once: The most corrections of a batch.
    """

    pipeline: str
    topic: str
    topic_id: str
    run: str
    starts: Mapping[int, int]
    at_once: int = AT_ONCE


def refuse_truncated(pipeline: str, topic: str, ends: Mapping[int, int], known: Mapping[int, int]) -> None:
    """Raise ``OplogTopicChanged`` where a partition ends before an offset that was read, or compared."""
    for partition, first in sorted(known.items()):
        end = ends.get(partition, first)
        if end < first:
            problem = f"has lost the end of partition {partition}, from offset {end} on"
            raise OplogTopicChanged(pipeline, topic, problem)


class Sending:
    """The corrections of one synchronisation, and what is known of their topic."""

    def __init__(
        self,
        rules: SendingRules,
        stored: Mapping[bytes, Place | None],
        corrections: Iterable[tuple[ObjectOperation, int]],
    ) -> None:
        """Begin.

        Args:
            rules: What the run is about.
            stored: The objects to correct, by their keys, with the place of their newest operation that the
                comparison knows; None where it knows none.
            corrections: The correction of each of them, with its partition.
        """
        self._rules, self._stored = rules, stored
        self._left: Iterator[tuple[ObjectOperation, int]] = iter(corrections)
        self._next = dict(rules.starts)
        """The first offset of each partition that was not read."""
        self._needed = dict(rules.starts)
        """How far each partition has to be read before anything more is sent."""
        self._valid: dict[bytes, Place] = {}
        """The last valid operation of every object that was met."""
        self._ours: dict[bytes, Place] = {}
        """The valid correction of this run, of every object that has one."""
        self._under_way: list[tuple[ObjectOperation, int]] = []
        """The batch that was sent last."""
        self._again: list[tuple[ObjectOperation, int]] = []
        self._settled: list[Settled] = []
        self._void_batches = 0
        self.resent = 0
        """How many corrections were sent once more because they were void."""

    @property
    def next_offsets(self) -> Mapping[int, int]:
        """The first offset of each partition that was not read."""
        return self._next

    def refuse_truncated(self, ends: Mapping[int, int]) -> None:
        """Raise ``OplogTopicChanged`` where a partition ends before what was read: offsets are used again."""
        refuse_truncated(self._rules.pipeline, self._rules.topic, ends, self._next)

    def needed(self, partition: int) -> int:
        """How far a partition has to be read before the next batch, whatever its end is said to be."""
        return self._needed[partition]

    def wants(self, key: bytes) -> bool:
        """Whether the record with this key has to be shown to ``meet``."""
        return key in self._stored

    def meet(self, partition: int, offset: int, recorded: RecordedOperation) -> None:
        """Take note of an operation of one of the objects. In each partition, in the order of offsets."""
        key, correction = recorded.operation.key, recorded.correction
        if offset < self._next[partition]:
            return  # read before
        if correction is not None:
            if is_void(correction, offset, self._rules.topic_id, self._last_valid(key, partition)):
                return
            if correction.run == self._rules.run:
                self._ours[key] = partition, offset
        self._valid[key] = partition, offset

    def _last_valid(self, key: bytes, partition: int) -> int | None:
        """The offset of the last valid operation of an object that is known; None where there is none."""
        if (met := self._valid.get(key)) is not None:
            return met[1] if met[0] == partition else None
        stored = self._stored[key]
        if stored is None or stored[0] != partition:
            return None
        # A place beyond is one in a topic of the same name that was deleted: its offsets mean nothing here.
        return stored[1] if stored[1] < self._rules.starts[partition] else None

    def read_to(self, partition: int, end: int) -> None:
        """Note that everything before an offset was read, and met where it is wanted."""
        self._next[partition] = max(end, self._next[partition])

    def batch(self) -> list[Outgoing]:
        """The next corrections to send; none where all are settled.

        Raises ``CorrectionsVoided`` where nothing of many batches in a row counts.
        """
        for partition, needed in self._needed.items():
            # Otherwise a correction could be sent again that counts, or after an operation that was not met.
            assert self._next[partition] >= needed, f"partition {partition} was not read to {needed}"
        self._judge_last()
        found: list[tuple[ObjectOperation, int]] = []
        while len(found) < self._rules.at_once and (one := self._take()):
            if not self._settle(one[0]):
                found.append(one)
        self._under_way = found
        return [self._outgoing(*one) for one in found]

    def acknowledge(self, places: Iterable[Place]) -> None:
        """Note where the corrections of the batch are: they have to be read before the next one."""
        for partition, offset in places:
            self._needed[partition] = max(self._needed[partition], offset + 1)

    def take_settled(self) -> Sequence[Settled]:
        """What was settled since this was called last."""
        settled, self._settled = self._settled, []
        return settled

    def _judge_last(self) -> None:
        """Settle the batch that was sent last; what is void goes into the next ones."""
        if not self._under_way:
            return
        void = [one for one in self._under_way if not self._settle(one[0])]
        self._void_batches = self._void_batches + 1 if len(void) == len(self._under_way) else 0
        self._again += void
        self.resent += len(void)
        if self._void_batches == MOST_VOID:
            left = len(self._again) + sum(not self._settle(one[0]) for one in self._left)
            raise CorrectionsVoided(self._rules.pipeline, self._rules.topic, left, MOST_VOID)

    def _take(self) -> tuple[ObjectOperation, int] | None:
        return self._again.pop() if self._again else next(self._left, None)

    def _settle(self, operation: ObjectOperation) -> bool:
        key = operation.key
        place = self._valid.get(key)
        if place is None:
            return False
        ours = self._ours.get(key)
        self._settled.append(Settled(operation, ours or place, ours is not None))
        return True

    def _outgoing(self, operation: ObjectOperation, partition: int) -> Outgoing:
        rules = self._rules
        return Outgoing(operation, partition, Correction(rules.run, self._next[partition], rules.topic_id))
