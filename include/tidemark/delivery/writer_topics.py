"""Which topics of a binding a writer takes, where one was deleted and recreated under the same name.

The target of a writer that compares offsets can hold only one topic of a name: the first in the log, or the
one that the writer began with (`start: recreated`). The writer skips the messages of the others. An operator
has allowed that by accepting the recreated topic, after a plan that named the consequence for the writer.
Each topic that is left out is recorded with the writer, with the number of its messages. Where that plan was
never shown, or no topic would be left, the writer stops. Writers that do not compare offsets take all topics.
Which topic the tables hold is read in ``client.topic_record``, not here.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace

import structlog

from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.published_log import PublishedLog, reading
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import LeftOut, TopicStart, WriterState
from tidemark.delivery.writer import Past, Writer
from tidemark.errors import with_fields
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.binding import NOTHING_YET, Binding
from tidemark.log.model.loss import AcceptedLoss
from tidemark.log.model.manifest import LogFile
from tidemark.log.model.recreated_topics import Recreation, Recreations, topics_in_log
from tidemark.log.state.control import LogControl

events = structlog.get_logger()


@with_fields
class EveryTopicRecreated(DeliveryError):
    """Every topic that a writer holds was recreated: it has no topic left to deliver."""

    needs_person = True

    pipeline: str
    writer: str
    gone: Mapping[str, int]

    def __str__(self) -> str:
        topics = ", ".join(
            (f"{topic} (from id {first_id} on)" for topic, first_id in sorted(self.gone.items()))
        )
        return (
            f"{self.pipeline}/{self.writer}: every topic that it takes was deleted and made again: "
            f"{topics}. Its target holds the old ones, and heads and pointers compare offsets, which begin "
            "anew. Nothing was written, and it stays stopped. What was captured since is in the log: add a "
            "journal writer with a new name, a keyspace of its own and `start: recreated`. It begins "
            "exactly there"
        )


@with_fields
class LeavingOutUnplanned(DeliveryError):
    """A recreated topic was accepted before the plan of an acceptance named the consequence for writers."""

    needs_person = True

    pipeline: str
    writer: str
    topic: str
    who: str

    text = (
        "{pipeline}/{writer}: topic {topic} was made again. {who} accepted that before it was part of the "
        "plan that this writer would go on without it, so it stops here. Nothing was written. See the plan "
        'and accept it: tidemark log accept {pipeline} --execute --reason "…", then resume'
    )


@with_fields
class NothingRecreated(DeliveryError):
    """A writer with `start: recreated` cannot begin."""

    needs_person = True

    pipeline: str
    writer: str
    problem: str

    text = (
        "{pipeline}/{writer}: `start: recreated` is refused, because {problem}. It was not registered, and "
        "nothing was delivered."
    )


@dataclass(frozen=True, slots=True)
class Taken:
    """The part of a binding that one writer takes.

    Attributes:
        writer: The writer, without the topics that it leaves out.
        files: The files that hold messages for it.
    """

    writer: Writer
    files: Sequence[LogFile]


@dataclass(frozen=True, slots=True)
class LeftOutCount:
    """The messages that are left out when a position moves.

    Attributes:
        rows: The writer's rows about them, to be committed with the move.
        messages: Their number.
    """

    rows: Mapping[str, str]
    messages: int


@dataclass(frozen=True)
class TopicBeginnings:
    """Where topics begin that were created again under the same name, for writers that compare the messages
    of a topic with earlier ones.

    Attributes:
        bindings: The bindings of the pipeline.
        recreations: What was accepted; nothing where the writer compares none.
    """

    bindings: Bindings
    recreations: Recreations

    @classmethod
    def of(cls, writer: Writer, log: PublishedLog) -> "TopicBeginnings":
        """The beginnings of the topics of a log."""
        compares = writer.since_recreation({}) is not None
        return cls(log.bindings, Recreations.of(log.control.accepted_losses() if compares else ()))

    def tell(self, writer: Writer, binding: Binding) -> Writer:
        """The writer for a binding: it knows which messages belong to earlier topics."""
        if not self.recreations:
            return writer
        first_ids = {
            topic: self._first_id(self.recreations.since(topic, number).accepted)
            for topic in {s.topic for s in binding.slices}
            if (number := self.recreations.number_in(topic, binding))
        }
        return (writer.since_recreation(first_ids) or writer) if first_ids else writer

    def _first_id(self, accepted: AcceptedLoss) -> int:
        """The first id after those of the earlier topic."""
        return (accepted.after if accepted.t is None else self.bindings.at(accepted.t).end) + 1


def taken_number(starts: Mapping[str, TopicStart], topic: str) -> int:
    """The number of the topic of a name that a writer's target holds: 0 for the first, 1 after a
    recreation."""
    return starts[topic].number if topic in starts else 0


class WriterTopics:
    """The topics of one writer during a delivery."""

    def __init__(self, writer: Writer, log: PublishedLog, positions: Positions, state: WriterState) -> None:
        self.writer, self._log, self._starts = writer, log, state.starts
        compares_offsets = writer.leaving_out(frozenset()) is not None
        self._recreations = Recreations.of(log.control.accepted_losses() if compares_offsets else ())
        self._beginnings = TopicBeginnings.of(writer, log)
        self._counted = positions.left_out(writer.name) if self._recreations else {}

    def of(self, writer: Writer) -> "WriterTopics":
        """The same topics for the same writer after it was bound to its target."""
        other = copy(self)
        other.writer = writer
        return other

    def take(self, binding: Binding, files: Sequence[LogFile]) -> Taken:
        """The writer and the files that it takes of a binding; raises where it must stop."""
        left = self._left(binding)
        if not left:
            return Taken(self._beginnings.tell(self.writer, binding), files)
        gone = self._gone(binding)
        if left & gone.keys():
            self._refuse(binding, gone)
        writer = self.writer.leaving_out(left) or self.writer
        return Taken(writer, [file for file in files if file.topic not in left])

    def _refuse(self, binding: Binding, gone: Mapping[str, Recreation]) -> None:
        pipeline, name = self._log.control.pipeline, self.writer.name
        bound = {topic for topic, _ in self._log.control.bindings_head().reached}
        held = {topic for topic in bound | self.writer.named_topics if self.writer.admits(topic)}
        if held <= gone.keys():
            first_ids = {topic: self._first_id(gone[topic], binding) for topic in held}
            raise EveryTopicRecreated(pipeline, name, first_ids)
        for topic, recreation in sorted(gone.items()):
            if not recreation.accepted.is_planned:
                raise LeavingOutUnplanned(pipeline, name, topic, recreation.accepted.who)

    def _first_id(self, recreation: Recreation, binding: Binding) -> int:
        """The first id of a recreated topic that is in a binding or before it."""
        topic = recreation.topic
        known = self._counted.get(topic)
        if known is not None:
            return known.first_id
        owned = [ids[0] for place, ids in binding.owned.items() if place[0] == topic]
        return min(owned, default=recreation.accepted.after + 1)

    def past(self, state: WriterState, binding: Binding) -> Past:
        """What ``Writer.examine`` gets for a binding."""
        before = self._log.bindings.offsets_before
        offsets = before(binding, self._is_same(binding)) if self._recreations else before(binding)
        return Past(state.position, state.reached, offsets, state.theirs)

    def count(self, binding: Binding, files: Sequence[LogFile], position: int) -> LeftOutCount:
        """The messages that are left out up to a position in a binding and were not counted before."""
        left = self._left(binding)
        gone = self._gone(binding) if left else {}
        rows, further = dict[str, str](), 0
        for topic in sorted(left & gone.keys()):
            own = [file for file in files if file.topic == topic]
            known = self._counted.get(topic)
            counted = self._count(binding, own, gone[topic], position)
            if counted is not None and counted != known:
                self._counted[topic] = counted
                rows[counted.row] = json.dumps(asdict(counted), sort_keys=True)
                further += counted.messages - (known.messages if known else 0)
        return LeftOutCount(rows, further)

    def _count(
        self, binding: Binding, files: Sequence[LogFile], recreation: Recreation, position: int
    ) -> LeftOut | None:
        topic, accepted = recreation.topic, recreation.accepted
        first = self._first_id(recreation, binding)
        id_, why = binding.topic_ids.get(topic), (accepted.who, accepted.reason, accepted.at)
        known = self._counted.get(topic) or LeftOut(topic, id_, first, first - 1, 0, *why)
        if (accepted.at, accepted.who) != (known.at, known.who):  # recreated once more
            known = replace(known, who=accepted.who, reason=accepted.reason, at=accepted.at)
        upto = min(position, binding.end)
        if upto <= known.through:
            return self._counted.get(topic)
        with reading():
            further = sum(
                self._log.folder.count_between(file, max(binding.base, known.through + 1), upto)
                for file in files
            )
        events.warning(
            "left out: the topic was made again",
            writer=self.writer.name,
            topic=topic,
            t=binding.t,
            messages=further,
            accepted_by=accepted.who,
        )
        messages = known.messages + further
        return replace(known, topic_id=id_ or known.topic_id, through=upto, messages=messages)

    def _left(self, binding: Binding) -> frozenset[str]:
        """The topics of a binding that differ from those of the same names that the target holds."""
        if not self._recreations:
            return frozenset()
        topics = {s.topic for s in binding.slices if self.writer.admits(s.topic)}
        return frozenset(
            topic
            for topic in topics
            if self._recreations.number_in(topic, binding) != taken_number(self._starts, topic)
        )

    def _gone(self, binding: Binding) -> dict[str, Recreation]:
        """The topics that the target holds and that were recreated by the time of a binding."""
        found = {}
        for topic in self._recreations.of_topics:
            number = self._recreations.number_in(topic, binding)
            if number > taken_number(self._starts, topic) and self.writer.admits(topic):
                found[topic] = self._recreations.since(topic, number)
        return found

    def _is_same(self, binding: Binding) -> Callable[[str, Binding], bool]:
        numbers = self._recreations.number_in
        return lambda topic, older: numbers(topic, older) == numbers(topic, binding)


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a writer with `start: recreated` begins.

    Attributes:
        position: Its first position.
        starts: The recreated topics that it begins with, by name.
    """

    position: int
    starts: Mapping[str, TopicStart]


def find_beginning(writer: Writer, control: LogControl, end: int) -> Beginning:
    """Where the newest recreated topics begin, of those that a writer takes.

    ``end`` is the last published id. Raises ``NothingRecreated`` where the writer would get only a part of
    some topic.
    """

    def refuse(problem: str) -> NothingRecreated:
        return NothingRecreated(control.pipeline, writer.name, problem)

    recreations = Recreations.of(control.accepted_losses())
    bindings = list(Bindings(control).every())
    in_log = [one for one in topics_in_log(bindings, recreations) if writer.admits(one.topic)]
    following = (bindings[-1].end if bindings else NOTHING_YET) + 1
    starts = {
        topic: TopicStart(recreations.newest(topic), following)
        for topic in recreations.of_topics
        if writer.admits(topic)
    }
    for one in in_log:
        if one.topic in starts and one.number == starts[one.topic].number:
            starts[one.topic] = TopicStart(one.number, one.first_id, one.topic_id)
    if not starts:
        raise refuse("no topic that it takes was accepted as made again")
    first = min(start.first_id for start in starts.values())
    for one in in_log:
        if one.topic not in starts and one.first_id < first:
            raise refuse(
                f"it also takes topic {one.topic}, which was not made again and is in the log from id "
                f"{one.first_id} on. Let its `namespaces` find only those that were: "
                + ", ".join(sorted(starts))
            )
    places = {(s.topic, s.partition) for binding in bindings for s in binding.slices}
    if problem := writer.refuses_recreated({place for place in places if writer.admits(place[0])}):
        raise refuse(problem)
    return Beginning(min(first - 1, end), starts)


def recreated_topics(control: LogControl, state: WriterState) -> frozenset[str]:
    """The topics that were recreated since, so that a writer's target holds older ones of these names."""
    found = Recreations.of(control.accepted_losses())
    return frozenset(
        topic for topic in found.of_topics if found.newest(topic) > taken_number(state.starts, topic)
    )
