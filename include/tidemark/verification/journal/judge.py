"""The judgement of one entity: its state as the log's messages define it, against its head and rows.

The judge gets all messages and the head first, then the rows, one by one. An entity is only called different
where that can be proved. An entity with messages in two Kafka partitions should have stopped its writer: a
position past the second one is a difference, whatever the tables hold. Nothing is read here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidemark.journal.action import Mark
from tidemark.journal.codec.record import read_action
from tidemark.journal.comparison import Comparison
from tidemark.journal.difference import Difference, DifferenceKind
from tidemark.journal.effect import Message
from tidemark.journal.errors import JournalError, Repartitioned, Undecodable
from tidemark.journal.expected import Expected
from tidemark.journal.head import Head, record_id
from tidemark.journal.visible import FoundRow
from tidemark.verification.basis import Basis
from tidemark.verification.journal.provable import Unprovable


class LoggedRecord(NamedTuple):
    """A message as it is in the log, without topic and key."""

    id: int
    partition: int
    offset: int
    write_time: int
    t: int
    value: bytes | None
    timestamp: int
    timestamp_type: int
    headers: Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class EntityVerdict:
    """The result for one entity: it matches, it has differences, or it is not provable.

    Attributes:
        differences: The first ones; ``total`` counts all.
        unprovable: Why the entity cannot be judged; None where it can.
        detail: The message that cannot be applied, where that is the reason.
    """

    topic: str
    key: str
    differences: tuple[Difference, ...] = ()
    total: int = 0
    unprovable: Unprovable | None = None
    detail: str = ""


class EntityJudge:
    """Collects the messages, the head and the rows of one entity, and concludes with a verdict."""

    def __init__(self, basis: Basis, topic: str, key: str) -> None:
        self._basis, self._topic, self._key = basis, topic, key
        self._expected = Expected(topic, key, segment_size=basis.segment_size, zone=basis.zone)
        self._head: Head | None = None
        self._problem = ""
        self._repartitioned: Repartitioned | None = None
        self._is_unfinished = False
        self._comparison: Comparison | None = None

    @property
    def segments(self) -> set[int]:
        """The segments of the table ``journal`` that should have rows."""
        return self._expected.segments

    def hear_message(self, record: LoggedRecord) -> None:
        """Take the next message, oldest first. One beyond the position may or may not have been delivered."""
        if self._problem or self._repartitioned or record.id in self._basis.acknowledged:
            return
        if not self._basis.takes(self._topic, record.id):
            return  # of another incarnation of the topic
        id_, partition, offset, write_time, t, value, timestamp, timestamp_type, headers = record
        is_beyond = id_ > self._basis.position
        try:
            action = read_action(self._key.encode(), value, timestamp, timestamp_type, headers)
            if action is None or isinstance(action, Mark):
                return
            if is_beyond:
                self._is_unfinished = True
            else:
                self._expected.apply(Message(id_, partition, offset, write_time, t, action))
        except Repartitioned as error:
            self._repartitioned = error
        except JournalError as error:
            if not is_beyond:  # beyond the position it stopped the writer, so nothing of it was written
                located = error.at(partition, offset, id_) if isinstance(error, Undecodable) else error
                self._problem = str(located)

    def hear_head(self, head: Head | None) -> None:
        """Take the head that the tables hold; None where there is none."""
        self._head = head

    def hear_row(self, row: FoundRow) -> None:
        """Take the next row, after all messages and the head."""
        self._rows.take(row)

    def conclude(self) -> EntityVerdict | None:
        """The verdict; None for an entity that neither the log nor the tables hold."""
        messages, head = self._expected.messages, self._head
        if not messages and not self._problem and (head is None or self._topic not in self._basis.topics):
            return None
        objection, detail = self._objection(head)
        if objection:
            return EntityVerdict(self._topic, self._key, unprovable=objection, detail=detail)
        if self._repartitioned:
            return EntityVerdict(self._topic, self._key, (_split(self._repartitioned),), 1)
        comparison = self._rows
        differences = tuple(comparison.conclude())
        if differences and self._is_unfinished:
            return EntityVerdict(self._topic, self._key, unprovable=Unprovable.UNFINISHED)
        return EntityVerdict(self._topic, self._key, differences, comparison.total)

    @property
    def _rows(self) -> Comparison:
        """The comparison of rows, which starts when all messages and the head are known."""
        if self._comparison is None:
            self._comparison = Comparison(self._topic, self._key, self._expected.conclude(), self._head)
        return self._comparison

    def _objection(self, head: Head | None) -> tuple[Unprovable | None, str]:
        if self._problem:
            return Unprovable.NOT_APPLICABLE, self._problem
        partition = self._expected.partition
        if partition is None and head is not None:
            partition = head.partition
        place = (self._topic, -1 if partition is None else partition)
        return self._basis.ground.objection(place, self._begins_at(place[1], head)), ""

    def _begins_at(self, partition: int, head: Head | None) -> int | None:
        """The offset before which the entity's present state has no messages; None where that is unknown.

        A purge in the log is such an offset. An append of event 1 alone is not, because a delete before the
        log's beginning may have created the head. But where the head's record id derives from that append,
        the append created the head. Where there is no head, it is missing whichever message created it.
        """
        expected = self._expected
        if expected.purged_at is not None or expected.appended_at is None:
            return expected.purged_at
        of_append = record_id(self._topic, partition, self._key, expected.appended_at)
        return expected.appended_at if head is None or head.record_id == of_append else None


def _split(error: Repartitioned) -> Difference:
    return Difference(
        DifferenceKind.REPARTITIONED,
        error.topic,
        error.key,
        expected=error.head_partition,
        found=error.partition,
        detail=f"from offset {error.offset} on",
    )
