"""A pipeline that continues another replicator's work begins right behind it, also after crashes."""

from collections.abc import Iterable

import pytest
from tests.support.faults import Killed

from tidemark.app import replicate
from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.consensus.memory import MemoryConsensus
from tidemark.faults import FaultPoint
from tidemark.log.bind import OffsetsLost
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.binding import Available, Offsets, Slice, TopicPartition
from tidemark.log.state.control import LogControl
from tidemark.pipeline.model import Pipeline

pytestmark = pytest.mark.unit

AVAILABLE = {("orders", 0): Offsets(0, 10), ("orders", 1): Offsets(3, 10), ("orders", 2): Offsets(5, 9)}
DECLARED = {
    "name": "orders",
    "source": {"kafka": {"topics": ["orders"], "start": "pointers"}},
    "log": {"path": "/nowhere"},
    "writers": [{"name": "cassandra", "kind": "journal"}],
}


class Source:
    """What Kafka and the tables say."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        self.pointers: dict[TopicPartition, int] = {("orders", 0): 6, ("orders", 1): 2}
        self.available = dict(AVAILABLE)
        self.consensus = MemoryConsensus()
        self.control = LogControl(self.consensus, "orders")
        monkeypatch.setattr(replicate, "open_control", lambda connections: self.consensus)
        monkeypatch.setattr(replicate, "connect", lambda connection: None)
        monkeypatch.setattr(replicate, "server_time", lambda session: replicate.wall_clock())
        monkeypatch.setattr(
            replicate, "read_available", lambda topics, kafka: Available(self.available, {"orders": "id"})
        )

    def next_offsets(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        self.asked += 1
        return {place: self.pointers[place] + 1 for place in places if place in self.pointers}

    def begin(self, run_id: str = "run") -> replicate.RunPlan:
        declared = Pipeline.model_validate(DECLARED, context={})
        nowhere = CassandraConnection(hosts=("nowhere",))
        connections = Connections(
            kafka=KafkaConnection(servers="nowhere:1"), cassandra={"cassandra_default": nowhere}
        )
        return replicate.begin_run(declared, connections, run_id, retry=False, next_offsets=self.next_offsets)

    def slices(self) -> tuple[Slice, ...]:
        return next(Bindings(self.control).after(-1)).slices


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    return Source(monkeypatch)


def test_the_first_binding_begins_behind_the_pointers_and_a_partition_without_one_at_its_earliest(source):
    source.begin()
    assert source.slices() == (
        Slice("orders", 0, 7, 10),
        Slice("orders", 1, 3, 10),
        Slice("orders", 2, 5, 9),
    )


def test_only_the_first_run_asks_for_the_pointers(source):
    source.begin("one")
    source.begin("two")
    assert source.asked == 1


def test_with_nothing_new_the_place_is_kept(source):
    source.pointers = {("orders", 0): 9, ("orders", 1): 9, ("orders", 2): 8}
    assert source.begin("one").t is None
    source.pointers = {}
    source.available[("orders", 0)] = Offsets(0, 12)
    source.begin("two")
    assert source.slices() == (Slice("orders", 0, 10, 12),)


def test_records_lost_between_the_pointer_and_the_earliest_close_the_log_s_gate(source):
    source.pointers[("orders", 1)] = 0
    with pytest.raises(OffsetsLost, match="orders/1"):
        source.begin()
    assert source.control.log_gate() is not None


def test_a_run_that_dies_when_it_has_taken_over_is_finished_by_the_next(source, kill_at):
    kill_at(FaultPoint.TAKEN_OVER)
    with pytest.raises(Killed):
        source.begin("one")
    source.pointers = {}
    source.begin("two")
    assert source.slices()[0] == Slice("orders", 0, 7, 10)
