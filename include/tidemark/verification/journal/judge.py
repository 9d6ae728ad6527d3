"""One entity judged: what the log makes of it against what the tables hold.

Its head and its messages come first, then its rows, one by one. Nothing is called wrong that cannot be proved
to be, and an entity that neither the log nor the tables know is none. One that is in two partitions should
have stopped its writer: a position past that is wrong, whatever the tables hold.
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
    """A message as the log keeps it, without topic and key."""

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
    """What came of one entity."""

    topic: str
    key: str
    differences: tuple[Difference, ...] = ()
    total: int = 0
    """How many differences there are, told or not."""
    unprovable: Unprovable | None = None
    detail: str = ""


class EntityJudge:
    """Hears everything about one entity, and then says what to think of it."""

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
        """The segments of ``journal`` that should have rows."""
        return self._expected.segments

    def hear_message(self, record: LoggedRecord) -> None:
        """The next message, oldest first; what is beyond the position may have been delivered or not."""
        if self._problem or self._repartitioned or record.id in self._basis.acknowledged:
            return
        if not self._basis.takes(self._topic, record.id):
            return  # of another topic that has, or had, the same name
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
            if not is_beyond:  # nothing of it was delivered
                said = error.at(partition, offset, id_) if isinstance(error, Undecodable) else error
                self._problem = str(said)

    def hear_head(self, head: Head | None) -> None:
        """The head as a reader finds it."""
        self._head = head

    def hear_row(self, row: FoundRow) -> None:
        """The next row, after all messages and the head."""
        self._begun.take(row)

    def conclude(self) -> EntityVerdict | None:
        """What to think of it; None where there is nothing to think about."""
        messages, head = self._expected.messages, self._head
        if not messages and not self._problem and (head is None or self._topic not in self._basis.topics):
            return None
        objection, detail = self._objection(head)
        if objection:
            return EntityVerdict(self._topic, self._key, unprovable=objection, detail=detail)
        if self._repartitioned:
            return EntityVerdict(self._topic, self._key, (_split(self._repartitioned),), 1)
        comparison = self._begun
        differences = tuple(comparison.conclude())
        if differences and self._is_unfinished:
            return EntityVerdict(self._topic, self._key, unprovable=Unprovable.UNFINISHED)
        return EntityVerdict(self._topic, self._key, differences, comparison.total)

    @property
    def _begun(self) -> Comparison:
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
        """The offset before which nothing of the entity can lie; None without one.

        A purge in the log is one. An append of event 1 is none by itself: a delete before the log may have
        made the head, and then the append was put on it. But a head whose record id was made from that very
        append was begun by it, on nothing; and where there is no head at all, one is missing in any case.
        """
        expected = self._expected
        if expected.purged_at is not None or expected.appended_at is None:
            return expected.purged_at
        begun = record_id(self._topic, partition, self._key, expected.appended_at)
        return expected.appended_at if head is None or head.record_id == begun else None


def _split(error: Repartitioned) -> Difference:
    return Difference(
        DifferenceKind.REPARTITIONED,
        error.topic,
        error.key,
        expected=error.head_partition,
        found=error.partition,
        detail=f"from offset {error.offset} on",
    )
