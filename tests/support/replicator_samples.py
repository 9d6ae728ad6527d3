"""A stopped journal and a kafka-journal replicator beside it, as values that a test sets."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support.pipeline_world import PipelineWorld

from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.delivery.operator.action_plan import ActionPlan
from tidemark.delivery.state.handed_back import HAND_BACK, TAKE_OVER
from tidemark.delivery.state.writer_state import Cause, WriterGate, WriterState
from tidemark.journal_tables.statements import Pointer
from tidemark.kafka.consumer_groups import ReplicatorRuns
from tidemark.log.model.binding import TopicPartition
from tidemark.pipeline.model import Pipeline
from tidemark.writers.replicator import hand_back, take_back
from tidemark.writers.replicator import watch as replicator_watch
from tidemark.writers.replicator.hand_back import HandBack
from tidemark.writers.replicator.take_back import TakeBack
from tidemark.writers.replicator.watch import ReplicatorWatch

WRITER = SimpleNamespace(name="cassandra", shape={"kind": "journal"})
PLACE: TopicPartition = ("orders", 0)
GROUP = "replicator-orders"
CONNECTIONS = Connections(
    kafka=KafkaConnection(servers="nowhere:1"),
    cassandra={"cassandra_default": CassandraConnection(hosts=("nowhere",))},
)


def declared(start: str = "earliest", **keys: object) -> Pipeline:
    journal = {"name": "cassandra", "kind": "journal"} | keys
    body = {
        "name": "orders",
        "source": {"kafka": {"topics": ["orders"], "start": start}},
        "log": {"path": "/nowhere"},
        "writers": [journal, {"name": "archive", "kind": "files", "path": "/elsewhere"}],
    }
    return Pipeline.model_validate(body, context={})


class Theirs(PipelineWorld):
    """A journal at the end of three messages, its tables' pointers and the replicator's group."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(root)
        self.committed: list[object] = []
        self.seen: list[WriterState] = []
        self.members: tuple[str, ...] = ()
        self.asked: list[set[str]] = []
        """The topics whose groups were looked at, a set for every request."""
        self.pointers = {PLACE: Pointer(2, 1_002)}
        self.pipeline = declared()
        self.publish(orders="abc")
        self.register(WRITER)
        self.forward(WRITER, 2)
        for module in (hand_back, take_back):
            monkeypatch.setattr(module, "connect", lambda connection: None)
            monkeypatch.setattr(module.JournalTables, "of", lambda session, journal: self)
            monkeypatch.setattr(module, "refuse_members", self.refuse_members)
        monkeypatch.setattr(take_back, "are_there", lambda session, journal: True)
        monkeypatch.setattr(hand_back, "commit_offsets", self.commit_offsets)
        monkeypatch.setattr(replicator_watch, "find_members", self.find_members)

    def read_timed_pointers(self, places: list[TopicPartition]) -> dict[TopicPartition, Pointer]:
        return {place: pointer for place, pointer in self.pointers.items() if place in places}

    def read_pointers(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {place: pointer.offset for place, pointer in self.read_timed_pointers(places).items()}

    def find_members(self, kafka: object, topics: set[str]) -> dict[str, tuple[str, ...]]:
        self.asked.append(set(topics))
        return {GROUP: self.members} if self.members and "orders" in topics else {}

    def refuse_members(self, pipeline: str, kafka: object, topics: object) -> None:
        if self.members:
            raise ReplicatorRuns(pipeline, GROUP, self.members)

    def commit_offsets(self, kafka: object, offsets: object) -> None:
        self.seen.append(self.state(WRITER))
        self.committed.append(offsets)

    def stop(self) -> None:
        self.operator.stop("cassandra").execute(self.deed("stop"))

    def plan_hand_back(self, writer: str = "cassandra") -> ActionPlan:
        return HandBack(self.pipeline, CONNECTIONS, self.control, self.positions, self.clock).plan(writer)

    def plan_take_over(self, writer: str = "cassandra") -> ActionPlan:
        return TakeBack(self.pipeline, CONNECTIONS, self.control, self.positions, self.clock).plan(writer)

    def hand_back(self) -> None:
        self.plan_hand_back().execute(self.deed(HAND_BACK))

    def take_over(self) -> None:
        self.plan_take_over().execute(self.deed(TAKE_OVER))

    def watch(self, only: str | None = None) -> None:
        """The look that a run takes."""
        watch = ReplicatorWatch(self.pipeline, CONNECTIONS, self.control, self.positions, self.clock)
        watch.refuse_replicator("run-7", only)

    def point(self, offset: int) -> None:
        """The replicator has come so far."""
        self.pointers = {PLACE: Pointer(offset, self.clock() - 1)}

    def close(self, cause: Cause) -> WriterGate:
        return self.close_gate(WRITER, WriterGate(cause, 3, 3, 2, "as it was given", self.clock()))
