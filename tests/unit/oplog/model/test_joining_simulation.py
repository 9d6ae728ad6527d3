"""Clients that join in any interleaving of hub, readers and producers miss nothing and get nothing twice.

The world has a topic with transactions that are aborted, records that are no operations, and corrections of
which some are void. A hub reads it in steps of its own and keeps few events. A client begins anywhere, is
read for while the hub goes on, follows, and changes between two agents, with the id of the last event it has
seen.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.oplog_samples import TOPIC_ID, bad_record, correction, operation, record

from tidemark.oplog.model.event_ids import OperationId, read_event_id
from tidemark.oplog.model.follower import Chunks, Follower, StreamShape
from tidemark.oplog.model.joining import WantedRange, missing_before
from tidemark.oplog.model.judged_operations import JudgedOperations, LookBack, LookedBack, TopicRecord
from tidemark.oplog.model.ring import Ring, RingEvent
from tidemark.oplog.model.server_sent_events import SERVER_SENT
from tidemark.oplog.model.stream_filter import StreamFilter
from tidemark.oplog.model.vector import MovingVector, Vector, vector_text

pytestmark = pytest.mark.unit

PARTITIONS = 2
PREFIX = b"o1.abcdefghijkl."
SHAPE = StreamShape(StreamFilter(), PREFIX, SERVER_SENT)


@dataclass
class Topic:
    """The committed records of every partition, by offset; aborted ones are holes before ``ends``."""

    records: list[dict[int, TopicRecord]] = field(default_factory=lambda: [{} for _ in range(PARTITIONS)])
    ends: list[int] = field(default_factory=lambda: [0] * PARTITIONS)

    def look_back(self, wanted: LookBack) -> LookedBack:
        found = self.records[wanted.partition]
        return LookedBack.of(
            wanted.first, [found[at] for at in sorted(found) if wanted.first <= at < wanted.end]
        )

    def judge(self, start: Vector) -> JudgedOperations:
        judge = JudgedOperations(TOPIC_ID, self.look_back)
        for partition, first in enumerate(start):
            judge.begin(partition, first)
        return judge

    def valid(self, start: Vector) -> list[list[int]]:
        """The valid offsets of each partition from a vector on, by one who has read all of it."""
        judge = self.judge((0,) * PARTITIONS)
        return [
            [at for at in sorted(found) if judge.operation(found[at]) is not None and at >= start[number]]
            for number, found in enumerate(self.records)
        ]


@dataclass
class Agent:
    """A hub with its ring."""

    topic: Topic
    ring: Ring
    judge: JudgedOperations
    hub: MovingVector

    @classmethod
    def at(cls, topic: Topic, start: Vector, most: int) -> "Agent":
        return cls(topic, Ring(start, most, 10**9), topic.judge(start), MovingVector(start))

    def step(self, partition: int, most: int) -> None:
        """The hub reads so many offsets of a partition; holes too."""
        events = []
        end = min(self.hub[partition] + most, self.topic.ends[partition])
        for at in range(self.hub[partition], end):
            found = self.topic.records[partition].get(at)
            if found and (one := self.judge.operation(found)):
                self.hub.move(partition, at + 1)
                data = b"%d/%d" % (partition, at)
                events.append(RingEvent(partition, at, one.event, one.type, one.parents, data, self.hub.text))
        self.hub.move(partition, end)
        self.ring.append(events, self.hub.offsets)


@dataclass
class Client:
    """What a client was sent, and the id of its last event."""

    vector: Vector
    got: list[tuple[int, int]] = field(default_factory=list)

    def take(self, data: bytes) -> None:
        for block in data.split(b"\n\n")[:-1]:
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n"))
            found = read_event_id(fields[b"id"].decode())
            assert isinstance(found, OperationId)
            assert all(map(int.__ge__, found.vector, self.vector)), "an id went back"
            self.vector = found.vector
            partition, offset = fields[b"data"].split(b"/")
            self.got.append((int(partition), int(offset)))

    def read(
        self, topic: Topic, judge: JudgedOperations, ranges: list[WantedRange], data: st.DataObject
    ) -> None:
        """A reader of the agent reads ranges for the client, their records in any order of partitions."""
        vector = MovingVector(self.vector)
        left = {one.partition: one for one in ranges}
        while left:
            one = left[data.draw(st.sampled_from(sorted(left)))]
            at = vector[one.partition]
            if at >= one.end:
                del left[one.partition]
                continue
            found = topic.records[one.partition].get(at)
            is_valid = found is not None and judge.operation(found) is not None
            vector.move(one.partition, at + 1)
            if is_valid:
                id_ = PREFIX + vector.text
                self.take(SERVER_SENT.event("update", id_, b"%d/%d" % (one.partition, at)))
        # Aborted tails: the client has them, though it was sent no event for them.
        self.vector = vector.offsets


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("produce"), st.integers(0, PARTITIONS - 1), st.integers(0, 3)),
        st.tuples(st.just("hub"), st.integers(0, PARTITIONS - 1), st.integers(1, 4)),
        st.tuples(st.just("other"), st.integers(0, PARTITIONS - 1), st.integers(1, 4)),
        st.tuples(st.just("client"), st.just(0), st.just(0)),
        st.tuples(st.just("move"), st.just(0), st.integers(0, 1)),
    ),
    max_size=50,
)


def produce(topic: Topic, partition: int, kind: int, data: st.DataObject) -> None:
    at = topic.ends[partition]
    one = operation(data.draw(st.sampled_from("xy")))
    if kind == 0:
        topic.records[partition][at] = record(at, one, partition)
    elif kind == 1:
        looked_at = data.draw(st.integers(max(at - 5, 0), at))
        topic.records[partition][at] = record(at, one, partition, correction(looked_at))
    elif kind == 2:
        topic.records[partition][at] = bad_record(at, partition)
    topic.ends[partition] = at + 1  # kind 3: aborted, or a marker


@given(STEPS, st.integers(1, 6), st.data())
def test_R16_R27_G6_in_any_interleaving_every_operation_arrives_once_and_in_order(
    steps: list[tuple[str, int, int]], most: int, data: st.DataObject
) -> None:
    topic = Topic()
    for partition in range(PARTITIONS):
        for _ in range(data.draw(st.integers(0, 8))):
            produce(topic, partition, data.draw(st.integers(0, 3)), data)
    starts = [tuple(data.draw(st.integers(0, end)) for end in topic.ends) for _ in range(3)]
    agents = [Agent.at(topic, start, most) for start in starts[:2]]
    begin = starts[2]
    client, served_by = Client(begin), agents[0]
    follower: Follower | None = None
    chunks = Chunks()

    def serve(agent: Agent) -> None:
        """One turn of the agent that serves the client."""
        nonlocal follower
        if follower is not None and follower.is_overrun(agent.ring):
            follower = None  # the client is told, and comes back with its last id
        if follower is None:
            ranges = list(missing_before(agent.ring, client.vector))
            if ranges:
                judge = topic.judge(client.vector)
                client.read(topic, judge, ranges, data)
                return
            follower = Follower(agent.ring, SHAPE, client.vector)
        while follower.is_behind(agent.ring):
            chunks.forget()
            client.take(follower.take(agent.ring, chunks).data)

    for name, partition, number in steps:
        if name == "produce":
            produce(topic, partition, number, data)
        elif name == "hub":
            agents[0].step(partition, number)
        elif name == "other":
            agents[1].step(partition, number)
        elif name == "client":
            serve(served_by)
        else:
            served_by, follower = agents[number], None
    for partition in range(PARTITIONS):
        served_by.step(partition, 10**6)
    for _ in range(4):
        serve(served_by)
    got = [[at for number, at in client.got if number == partition] for partition in range(PARTITIONS)]
    assert got == topic.valid(begin)


def test_R15_a_client_without_an_id_begins_where_the_hub_is() -> None:
    topic = Topic()
    produce_at = [(0, 0), (1, 0)]
    for partition, at in produce_at:
        topic.records[partition][at] = record(at, operation(), partition)
        topic.ends[partition] = at + 1
    agent = Agent.at(topic, (0, 0), 10)
    agent.step(0, 1)
    follower = Follower(agent.ring, SHAPE, agent.ring.vector)
    agent.step(1, 1)
    (line,) = [line for line in follower.take(agent.ring, Chunks()).data.split(b"\n") if line[:2] == b"id"]
    assert line == b"id: " + PREFIX + vector_text((1, 1)).encode()
