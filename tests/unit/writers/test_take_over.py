"""Tables are handed back only while nobody of ours can write to them."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.unit.delivery.samples import House

from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.consensus.lease import LEASE
from tidemark.delivery.lease import LeaseHeld, take
from tidemark.delivery.operate import ChangedMeanwhile, Plan
from tidemark.delivery.pipeline import Pipeline
from tidemark.delivery.writer_state import Cause, WriterGate, WriterState
from tidemark.writers import take_over
from tidemark.writers.take_over import HANDING_BACK, HandBack

pytestmark = pytest.mark.unit

WRITER = SimpleNamespace(name="cassandra", shape={"kind": "journal"})
DECLARED = {
    "name": "orders",
    "source": {"kafka": {"topics": ["orders"]}},
    "log": {"path": "/nowhere"},
    "writers": [{"name": "cassandra", "kind": "journal"}],
}


class Theirs(House):
    """A stopped journal, and the replicator's group as a list of what was committed to it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(root)
        self.committed: list[object] = []
        self.seen: list[WriterState] = []
        self.publish(orders="abc")
        self.register(WRITER)
        self.close_gate(WRITER, WriterGate(Cause.HAND, 3, 3, 2, "stopped by ann", 0))
        tables = SimpleNamespace(read_pointers=lambda places: {("orders", 0): 2})
        monkeypatch.setattr(take_over, "connect", lambda connection: None)
        monkeypatch.setattr(take_over.JournalTables, "of", lambda session, journal: tables)
        monkeypatch.setattr(take_over, "refuse_members", lambda pipeline, kafka, topics: None)
        monkeypatch.setattr(take_over, "_commit_offsets", self.commit)

    def commit(self, kafka: object, topics: object, offsets: object) -> None:
        self.seen.append(self.state(WRITER))
        self.committed.append(offsets)

    def plan(self) -> Plan:
        connections = Connections(
            kafka=KafkaConnection(servers="nowhere:1"),
            cassandra={"cassandra_default": CassandraConnection(hosts=("nowhere",))},
        )
        pipeline = Pipeline.model_validate(DECLARED, context={})
        return HandBack(pipeline, connections, self.control, self.positions, self.clock).plan("cassandra")

    def hand_back(self) -> None:
        self.plan().execute(self.deed("hand back"))


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Theirs:
    return Theirs(tmp_path, monkeypatch)


def test_the_writer_is_held_while_the_offsets_are_committed(theirs):
    theirs.hand_back()
    (during,) = theirs.seen
    assert (during.lease and during.lease.holder, theirs.state(WRITER).lease) == (HANDING_BACK, None)
    assert theirs.committed == [{"replicator-orders": {0: 3}}]


def test_the_gate_stays_closed_and_the_deed_is_kept(theirs):
    gate = theirs.gate(WRITER)
    theirs.hand_back()
    deeds = [deed.what for deed in theirs.positions.deeds("cassandra")]
    assert (theirs.gate(WRITER), deeds) == (gate, ["hand back"])


def test_tables_are_not_handed_back_while_a_resume_runs(theirs):
    take(theirs.positions, theirs.state(WRITER), "resume", theirs.clock)
    with pytest.raises(LeaseHeld):
        theirs.plan()


def test_a_resume_that_begins_while_one_looks_at_the_plan_has_the_tables(theirs):
    plan = theirs.plan()
    take(theirs.positions, theirs.state(WRITER), "resume", theirs.clock)
    with pytest.raises(ChangedMeanwhile):
        plan.execute(theirs.deed("hand back"))
    assert theirs.committed == []


@pytest.mark.parametrize(("holder", "waited"), [("resume", LEASE), (HANDING_BACK, 0)])
def test_who_died_with_the_writer_holds_up_nobody_for_long(theirs, holder, waited):
    take(theirs.positions, theirs.state(WRITER), holder, theirs.clock)
    theirs.clock.now += waited
    theirs.hand_back()
    assert len(theirs.committed) == 1
