"""Comparison of two renditions of a kafka writer: the messages in their topics, by id.

Within a partition, the ids of a writer grow; where both topics have as many partitions, a key is in the same
one of both, and they are compared partition by partition. Otherwise all partitions of a topic are read as one
stream. What retention has removed from the beginning of one topic cannot be compared. Where Kafka compacts a
topic, only the newest message of each key counts. Nothing is sent here.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from tidemark.outputs.model.evidence import VerificationMode
from tidemark.verification.renditions.comparison import Compared, Comparing
from tidemark.verification.renditions.matching import DifferenceTally, RuleMatcher
from tidemark.verification.renditions.messages import ID, Message, compare_messages
from tidemark.writers.kafka.last_id import ID_HEADER, WHAT, WRITER_HEADER, end_of, id_of
from tidemark.writers.kafka.output import REDELIVERED_BY, REDELIVERED_ID
from tidemark.writers.kafka.target import TargetTopic, keeps_the_middle, reading
from tidemark.writers.kafka.writer import KafkaWriter

REMOVED = "partitions from whose beginning messages were removed: earlier ids are not compared"
COMPACTED = "partitions that Kafka compacts, or may: only the newest message of each key is compared"
ALL_REMOVED = 2**63
"""The first id of a partition from which everything was removed."""
OWN_HEADERS = frozenset({ID_HEADER, WRITER_HEADER, REDELIVERED_BY, REDELIVERED_ID})


@dataclass(frozen=True, slots=True)
class Span:
    """What is compared of one partition.

    Attributes:
        partition: The partition.
        end: The offset at which reading ends.
        first_id: The first id that is compared.
    """

    partition: int
    end: int
    first_id: int = 0


@dataclass(frozen=True, slots=True)
class SpanPair:
    """The partitions of both topics that are compared with each other."""

    old: tuple[Span, ...]
    new: tuple[Span, ...]

    @property
    def first_id(self) -> int:
        """The first id that all of them have, as far as is known."""
        return max(one.first_id for one in (*self.old, *self.new))


@dataclass(frozen=True)
class TopicComparison:
    """Compares partitions of two topics. Picklable: it is sent to tasks.

    Attributes:
        old: The active rendition.
        new: The rendition that is verified.
        last_id: The last id that is compared.
        matcher: Which differences are meant.
        mode: How they are compared.
        is_compacted: Whether Kafka compacts one of the topics.
        has_late: Of both, whether messages were redelivered to them.
    """

    old: KafkaWriter
    new: KafkaWriter
    last_id: int
    matcher: RuleMatcher
    mode: VerificationMode
    is_compacted: bool = False
    has_late: tuple[bool, bool] = (False, False)

    def compare(self, pair: SpanPair) -> DifferenceTally:
        """The differences of the messages of some partitions."""
        with ExitStack() as stack:
            targets = (self.old.target, self.new.target)
            old, new = (
                self._messages(stack, target, spans, pair.first_id, has_late)
                for target, spans, has_late in zip(targets, (pair.old, pair.new), self.has_late, strict=True)
            )
            return compare_messages(old, new, self.matcher, self.mode)

    def _messages(
        self, stack: ExitStack, target: TargetTopic, spans: Sequence[Span], first_id: int, has_late: bool
    ) -> Iterator[Message]:
        """The messages of a topic between the compared ids, in the order of ids."""
        late = [one for span in spans for one in _redelivered(target, span)] if has_late else []
        streams = [_in_order(stack, target, span) for span in spans]
        merged = heapq.merge(sorted(late, key=itemgetter(ID)), *streams, key=itemgetter(ID))
        newest = self._newest(target, spans) if self.is_compacted else None
        for message in merged:
            id_ = message[ID]
            if first_id <= id_ <= self.last_id and (newest is None or newest[message["key"]] == id_):
                yield message

    def _newest(self, target: TargetTopic, spans: Sequence[Span]) -> Mapping[bytes | None, int]:
        """The newest id of each key; of a compacted topic, which has a key in every message."""
        found: dict[bytes | None, int] = {}
        with ExitStack() as stack:
            for span in spans:
                for message in _in_order(stack, target, span):
                    if message[ID] <= self.last_id:
                        found[message["key"]] = message[ID]
        return found


def compare_topics(comparing: Comparing) -> Compared:
    """See ``Compare``."""
    old, new = (_bound(one.writer) for one in (comparing.old, comparing.new))
    compacts = not (keeps_the_middle(old.target) and keeps_the_middle(new.target))
    spans = [_spans(writer) for writer in (old, new)]
    pairs = pair_spans(*spans)
    late = [bool(comparing.positions.redelivered(one.consumer)) for one in (comparing.old, comparing.new)]
    last_id, matcher, is_late = comparing.last_id, comparing.matcher, (late[0], late[1])
    comparison = TopicComparison(old, new, last_id, matcher, comparing.mode, compacts, is_late)
    tally = DifferenceTally.sum(comparing.engine.run("partitions", comparison.compare, pairs))
    partitions = sum(map(len, spans))
    removed = sum(span.first_id > 0 for side in spans for span in side)
    not_compared = {REMOVED: removed, COMPACTED: partitions if compacts else 0}
    found = {reason: count for reason, count in not_compared.items() if count}
    looked_at = {"messages": tally.rows, "partitions": partitions}
    return Compared(tally, looked_at, found, is_by_id=True)


def pair_spans(old: Sequence[Span], new: Sequence[Span]) -> list[SpanPair]:
    """The partitions that are compared with each other: one of each topic where they have as many, else
    all."""
    if len(old) == len(new):
        return [SpanPair((one,), (other,)) for one, other in zip(old, new, strict=True)]
    return [SpanPair(tuple(old), tuple(new))]


def _bound(writer: Any) -> KafkaWriter:
    if not isinstance(writer, KafkaWriter):
        raise TypeError(f"{writer.name} is no writer of a topic")
    present = writer.identify()
    return writer.bound_to(present) if present else replace(writer)


def _spans(writer: KafkaWriter) -> list[Span]:
    found = []
    for partition in range(writer.shape["partitions"]):
        end = end_of(writer.target, partition)
        with reading(writer.target, WHAT) as reader:
            begin = reader.offsets(writer.target.topic, partition)[0]
        found.append(Span(partition, end, _first_kept(writer.target, partition, begin, end)))
    return found


def _first_kept(target: TargetTopic, partition: int, begin: int, end: int) -> int:
    """The first id that a partition still has; 0 where nothing was removed from its beginning."""
    if begin == 0:
        return 0
    with ExitStack() as stack:
        first = next(_in_order(stack, target, Span(partition, end)), None)
    return ALL_REMOVED if first is None else int(first[ID])


def _in_order(stack: ExitStack, target: TargetTopic, span: Span) -> Iterator[Message]:
    """The messages that a delivery has sent to a partition, in the order of their ids."""
    return _read(stack, target, span, lambda record: id_of(record, target.origin))


def _redelivered(target: TargetTopic, span: Span) -> list[Message]:
    """The messages that were sent after all, behind those with later ids."""

    def id_after_all(record: Any) -> int | None:
        headers = dict(record.headers)
        by, id_ = headers.get(REDELIVERED_BY), headers.get(REDELIVERED_ID)
        is_own = by == target.origin.encode() and isinstance(id_, bytes) and id_.isdigit()
        return int(id_ or 0) if is_own else None

    with ExitStack() as stack:
        return list(_read(stack, target, span, id_after_all))


def _read(
    stack: ExitStack, target: TargetTopic, span: Span, id_of_record: Callable[[Any], int | None]
) -> Iterator[Message]:
    reader = stack.enter_context(reading(target, WHAT))
    begin = reader.offsets(target.topic, span.partition)[0]
    for record in reader.records(target.topic, span.partition, begin, span.end):
        id_ = id_of_record(record)
        if id_ is None:
            continue
        headers = [
            {"name": name, "value": value} for name, value in record.headers if name not in OWN_HEADERS
        ]
        yield {
            ID: id_,
            "key": record.key,
            "value": record.value,
            "headers": headers,
            "timestamp": record.timestamp,
        }
