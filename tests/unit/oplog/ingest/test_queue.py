"""The queue between senders and Kafka: what it takes, in which order it sends, and what it counts."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.clocks import Seconds
from tests.support.scripted_producer import ScriptedProducer, failure

from tidemark.oplog.agent.ingest.counters import IngestCounters
from tidemark.oplog.agent.ingest.queue import IngestQueue, QueuedOperation

pytestmark = pytest.mark.unit


@dataclass
class World:
    """A queue, its producers in their order, and a clock."""

    most: int = 100
    most_in_flight: int = 100
    most_bytes: int = 1_000
    clock: Seconds = field(default_factory=Seconds)
    counters: IngestCounters = field(default_factory=IngestCounters)
    producers: list[ScriptedProducer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue = IngestQueue(
            self.most,
            self.counters,
            lambda key: key[0] % 4,
            self.new_producer,
            clock=self.clock,
            most_bytes=self.most_bytes,
            most_in_flight=self.most_in_flight,
        )

    def new_producer(self, report) -> ScriptedProducer:
        self.producers.append(ScriptedProducer(report=report))
        return self.producers[-1]

    @property
    def producer(self) -> ScriptedProducer:
        return self.producers[-1]

    def put(self, *names: str, report=None) -> None:
        for name in names:
            self.counters.received += 1
            self.queue.put(QueuedOperation(name.encode(), name.encode(), report))

    def is_balanced(self) -> bool:
        counters, queue = self.counters, self.queue
        done = counters.ingested + counters.error + counters.discarded + counters.failed
        return counters.received == done + queue.waiting + queue.in_flight


@pytest.fixture
def world() -> World:
    return World()


def test_operations_are_sent_in_the_order_of_their_arrival(world):
    world.put("a", "b", "c")
    assert world.producer.values == [b"a", b"b", b"c"]


def test_r37_an_operation_counts_as_ingested_when_kafka_has_acknowledged_it(world):
    world.put("a", "b")
    world.producer.finish(1)
    assert (world.counters.ingested, world.queue.in_flight) == (1, 1)
    assert world.is_balanced()


def test_an_operation_that_kafka_refuses_is_counted_and_its_sender_is_told(world):
    told = []
    world.put("a", report=told.append)
    world.producer.finish(1, failure("too large"))
    assert (told, world.counters.failed, world.queue.last_failure) == (["too large"], 1, "too large")
    assert world.is_balanced()


def test_r40_the_room_of_the_queue_is_bounded_in_number(world):
    world.put(*(f"{number}" for number in range(99)))
    assert world.queue.has_room(1, 1)
    assert not world.queue.has_room(2, 1)


def test_the_room_of_the_queue_is_bounded_in_bytes(world):
    world.put("x" * 450)
    assert world.queue.has_room(1, 100)
    assert not world.queue.has_room(1, 101)


def test_bytes_are_given_back_when_an_operation_is_acknowledged(world):
    world.put("x" * 500)
    world.producer.finish(1)
    assert world.queue.has_room(1, 1_000)


def test_h4_what_the_client_does_not_take_waits_in_order(world):
    world.producer.is_full = True
    world.put("a", "b")
    world.producer.is_full = False
    world.put("c")
    world.queue.poll()
    assert world.producer.values == [b"a", b"b", b"c"]


def test_only_so_many_records_are_in_flight():
    world = World(most_in_flight=2)
    world.put("a", "b", "c")
    assert (world.queue.in_flight, world.queue.waiting) == (2, 1)
    world.producer.finish(1)
    world.queue.poll()
    assert world.producer.values == [b"a", b"b", b"c"]


def test_h4_kafka_counts_as_away_after_a_while_without_an_acknowledgement(world):
    world.put("a")
    assert not world.queue.is_stalled
    world.clock.now += 6
    assert world.queue.is_stalled
    world.producer.acknowledges = True
    world.queue.poll()
    assert not world.queue.is_stalled


def test_an_idle_queue_is_not_stalled_however_long_it_was_idle(world):
    world.clock.now += 600
    world.put("a")
    assert not world.queue.is_stalled


def test_a_broken_producer_is_replaced_and_what_is_unacknowledged_is_sent_again_in_order(world):
    world.put("a", "b", "c")
    world.producer.finish(1)
    world.producer.finish(1, failure("fenced", fatal=True))
    world.put("d")
    world.clock.now += 2
    world.queue.poll()
    first, second = world.producers
    assert first.is_abandoned
    assert second.values == [b"b", b"c", b"d"]
    assert world.is_balanced()


def test_a_sender_that_waits_is_told_of_a_replaced_producer_and_nothing_is_sent_again(world):
    told = []
    world.put("a", report=told.append)
    world.producer.refuses = failure("fatal", fatal=True)
    world.put("b")
    world.clock.now += 2
    world.queue.poll()
    assert told == ["Kafka's producer had to be replaced"]
    assert world.producer.values == [b"b"]
    assert world.is_balanced()


def test_a_producer_is_not_replaced_more_than_once_a_second(world):
    for _ in range(5):
        world.put("a")
        world.producer.finish(1, failure("fatal", fatal=True))
        world.queue.poll()
    assert len(world.producers) == 1
    world.clock.now += 2
    world.queue.poll()
    assert len(world.producers) == 2


def test_what_is_left_when_the_agent_stops_is_counted_and_senders_are_told(world):
    told = []
    world.put("a")
    world.put("b", report=told.append)
    assert world.queue.close() == 2
    assert (world.counters.failed, told) == (2, ["the agent was stopped"])
    assert world.is_balanced()


STEPS = st.one_of(
    st.tuples(st.just("put"), st.booleans()),
    st.tuples(st.just("acknowledge"), st.integers(1, 3)),
    st.tuples(st.just("refuse"), st.integers(1, 2)),
    st.tuples(st.just("break"), st.integers(1, 2)),
    st.tuples(st.just("pass"), st.floats(0, 3)),
    st.tuples(st.just("full"), st.booleans()),
)


@given(st.lists(STEPS, max_size=40))
def test_every_operation_is_in_one_place_and_each_sender_is_told_once(steps):
    world, told = World(most_in_flight=3), {}
    for number, (step, value) in enumerate(steps):
        match step:
            case "put":
                report = told.setdefault(number, []).append if value else None
                world.put(f"{number}", report=report)
            case "acknowledge":
                world.producer.finish(value)
            case "refuse":
                world.producer.finish(value, failure("refused"))
            case "break":
                world.producer.finish(value, failure("fatal", fatal=True))
            case "pass":
                world.clock.now += value
            case "full":
                world.producer.is_full = value
        world.queue.poll()
        assert world.is_balanced()
    world.queue.close()
    assert world.is_balanced()
    assert all(len(reasons) == 1 for reasons in told.values())
