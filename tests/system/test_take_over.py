"""Take-over from a kafka-journal replicator and the way back, with its pointers and its consumer group."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGKILL
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.structs import TopicPartition
from tests.support.services import their_tables
from tests.support.services.journal_histories import Sent
from tests.support.services.journal_runs import JournalRuns, declare_journal, given_topic, send
from tests.support.services.journal_world import given_keyspace
from tests.support.services.log_runs import Ended, publish_here
from tests.support.services.their_tables import SENT_AT, given_record

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.connections import Connections
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.delivery.deliver import deliver_to
from tidemark.delivery.operator.action_plan import NotPossible
from tidemark.delivery.state.writer_state import Cause
from tidemark.faults import FaultPoint
from tidemark.journal.action import append
from tidemark.journal.codec.record import write_action
from tidemark.journal.events import EncodedEvent, Events
from tidemark.journal.segments import head_segment
from tidemark.kafka.consumer_groups import ReplicatorRuns
from tidemark.log.bind import OffsetsLost
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.binding import Binding
from tidemark.pipeline.model import JournalDeclaration
from tidemark.writers.replicator.hand_back import HandBack
from tidemark.writers.replicator.take_over import NothingToTakeOver

pytestmark = pytest.mark.system

WRITER = "cassandra"


@pytest.fixture(scope="module")
def keyspace(services: Any) -> Iterator[str]:
    """One for all: every test has a topic of its own."""
    with given_keyspace(services.cassandra, "taken") as keyspace:
        yield keyspace


@pytest.fixture
def journal(
    services: Any, keyspace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[JournalRuns]:
    """A pipeline that is to take over a topic with five records in each of three partitions."""
    name = f"taken-{uuid4().hex[:8]}"
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    for variable in ("KAFKA", "CASSANDRA"):
        monkeypatch.delenv(f"AIRFLOW_CONN_{variable}_DEFAULT", raising=False)
    with given_topic(connections, name):
        send(connections, name, [given_record(p, number) for number in range(1, 6) for p in range(3)])
        yield declare_journal(tmp_path, connections, name, name, keyspace, monkeypatch, ", start: pointers")


def given_their_tables(journal: JournalRuns, pointers: dict[int, int]) -> None:
    """What the other replicator has left: the entities of the partitions it has pointers for."""
    (declared,) = journal.runs.pipeline.writers
    assert isinstance(declared, JournalDeclaration)
    their_tables.given_their_tables(journal.session, declared, journal.topic, pointers)


def opened(journal: JournalRuns) -> OpenPipeline:
    return OpenPipeline(journal.runs.pipeline, journal.runs.connections)


def bind(journal: JournalRuns, run_id: str = "run-1") -> Binding:
    plan = opened(journal).begin_run(run_id, retry=False)
    assert plan.t is not None
    return Bindings(journal.runs.control).at(plan.t)


def deliver(journal: JournalRuns) -> None:
    pipeline = opened(journal)
    delivered = deliver_to(
        pipeline.writer(WRITER),
        pipeline.log,
        pipeline.positions,
        "test",
        write_parts_here,
        limit=10**9,
        reload=lambda: pipeline.positions.load(WRITER),
    )
    assert (delivered.gate, delivered.position) == (None, pipeline.log.end)


def given_taken_over(journal: JournalRuns) -> Binding:
    """The other one got as far as offset 2 everywhere; the rest is ours, and delivered."""
    given_their_tables(journal, {0: 2, 1: 2, 2: 2})
    binding = bind(journal)
    publish_here(journal.runs, "run-1")
    deliver(journal)
    return binding


def given_stopped(journal: JournalRuns) -> None:
    plan = opened(journal).plan_stop(WRITER)
    plan.execute(AuditEntry(plan.action, "ann", "back to them", 0))


@contextmanager
def running_replicator(journal: JournalRuns) -> Iterator[KafkaConsumer]:
    """A reader of the topic as kafka-journal's replicator is one."""
    options = journal.runs.connections.kafka.client_options()
    group = f"replicator-{journal.topic}"
    for _ in range(4):
        # A consumer whose topic becomes known to it between two rebalances waits for ever: the next one.
        with KafkaConsumer(
            group_id=group, enable_auto_commit=False, auto_offset_reset="earliest", **options
        ) as consumer:
            consumer.partitions_for_topic(journal.topic)
            consumer.subscribe([journal.topic])
            if is_assigned(consumer):
                yield consumer
                return
    raise AssertionError("no consumer got an assignment")


def is_assigned(consumer: KafkaConsumer, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if consumer.poll(200) or consumer.assignment():
            return True
    return False


def committed(journal: JournalRuns) -> dict[int, int | None]:
    """Where the replicator would go on."""
    options = journal.runs.connections.kafka.client_options()
    with KafkaConsumer(
        group_id=f"replicator-{journal.topic}", enable_auto_commit=False, **options
    ) as consumer:
        return {p: consumer.committed(TopicPartition(journal.topic, p)) for p in range(3)}


def hand_back(journal: JournalRuns, now: int) -> HandBack:
    pipeline = opened(journal)
    return HandBack(
        pipeline.pipeline, pipeline.connections, journal.runs.control, pipeline.positions, lambda: now
    )


def test_the_first_binding_begins_right_behind_the_pointers(journal: JournalRuns) -> None:
    given_their_tables(journal, {0: 1, 1: 4})  # nothing new in partition 1, and no pointer for 2
    binding = bind(journal)
    assert [(s.partition, s.lower, s.upper) for s in binding.slices] == [(0, 2, 5), (2, 0, 5)]


def test_their_entities_are_continued(journal: JournalRuns) -> None:
    given_their_tables(journal, {0: 2, 1: 4})
    bind(journal)
    publish_here(journal.runs, "run-1")
    deliver(journal)

    # Five events each: theirs under their record id, ours behind them or anew.
    visible = journal.visible
    numbers = {key: sorted(seq_nr for _, seq_nr, _ in entity["rows"]) for key, entity in visible.items()}
    assert numbers == {f"entity-{partition}": [1, 2, 3, 4, 5] for partition in range(3)}
    assert {key: entity["segment_size"] for key, entity in visible.items()} == {
        "entity-0": 10_000,
        "entity-1": 10_000,
        "entity-2": 10,
    }
    assert journal.pointers == {0: 4, 1: 4, 2: 4}


def test_every_write_is_later_than_theirs(journal: JournalRuns) -> None:
    given_their_tables(journal, {0: 2, 1: 2, 2: 2})
    query = f"SELECT topic, WRITETIME(offset) AS time FROM {journal.keyspace}.pointer2"
    last = max(row.time for row in journal.session.execute(query) if row.topic == journal.topic)
    assert bind(journal).t > last


def test_a_second_run_goes_on_where_the_first_one_ended(journal: JournalRuns) -> None:
    given_taken_over(journal)
    send(journal.runs.connections, journal.topic, [given_record(1, 6)])
    binding = bind(journal, "run-2")
    assert [(s.partition, s.lower, s.upper) for s in binding.slices] == [(1, 5, 6)]


def test_nothing_is_bound_while_the_replicator_runs(journal: JournalRuns) -> None:
    given_their_tables(journal, {0: 1, 1: 1, 2: 1})

    with running_replicator(journal), pytest.raises(ReplicatorRuns) as refused:
        bind(journal)

    head = journal.runs.control.bindings_head()
    assert (refused.value.group, head.newest, head.reached) == (f"replicator-{journal.topic}", None, {})


def test_a_replicator_that_has_left_is_none(journal: JournalRuns) -> None:
    given_their_tables(journal, {0: 1, 1: 1, 2: 1})
    with running_replicator(journal):
        pass
    assert [s.lower for s in bind(journal).slices] == [2, 2, 2]


@pytest.mark.parametrize("has_tables", [False, True], ids=["no keyspace", "no pointers"])
def test_without_pointers_there_is_nothing_to_take_over(
    journal: JournalRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_tables: bool
) -> None:
    if has_tables:
        given_their_tables(journal, {})
    else:
        known = (journal.runs.connections, journal.topic, journal.runs.name)
        journal = declare_journal(tmp_path, *known, "never_made", monkeypatch, ", start: pointers")

    with pytest.raises(NothingToTakeOver) as refused:
        bind(journal)

    head = journal.runs.control.bindings_head()
    assert (refused.value.keyspace, head.newest, head.reached) == (journal.keyspace, None, {})


def test_offsets_lost_behind_their_pointer_close_the_gate_of_the_log(journal: JournalRuns) -> None:
    given_their_tables(journal, {0: 1, 1: 1, 2: 1})
    with KafkaAdminClient(**journal.runs.connections.kafka.client_options()) as admin:
        admin.delete_records({TopicPartition(journal.topic, 0): 4})

    with pytest.raises(OffsetsLost):
        bind(journal)

    gate = journal.runs.control.log_gate()
    assert gate is not None
    assert [(one.partition, one.lower, one.upper) for one in gate.losses] == [(0, 2, 4)]
    assert journal.runs.control.bindings_head().newest is None


def test_what_was_lost_up_to_their_pointer_is_no_loss(journal: JournalRuns) -> None:
    given_their_tables(journal, {0: 1, 1: 1, 2: 1})
    with KafkaAdminClient(**journal.runs.connections.kafka.client_options()) as admin:
        admin.delete_records({TopicPartition(journal.topic, 0): 2})
    assert [s.lower for s in bind(journal).slices] == [2, 2, 2]


def test_tables_are_not_handed_back_while_the_gate_is_open(journal: JournalRuns) -> None:
    binding = given_taken_over(journal)
    with pytest.raises(NotPossible, match="stop it first"):
        hand_back(journal, binding.t + 10**9).plan(WRITER)


def test_tables_are_not_handed_back_before_the_clock_has_passed_our_writes(journal: JournalRuns) -> None:
    binding = given_taken_over(journal)
    given_stopped(journal)
    with pytest.raises(NotPossible, match="ahead of the clock"):
        hand_back(journal, binding.t + binding.width).plan(WRITER)


def test_tables_are_not_handed_back_to_a_replicator_that_runs_already(journal: JournalRuns) -> None:
    binding = given_taken_over(journal)
    given_stopped(journal)
    with running_replicator(journal), pytest.raises(ReplicatorRuns):
        hand_back(journal, binding.t + binding.width + 1).plan(WRITER)


def test_when_the_clock_has_passed_our_writes_the_replicator_gets_our_offsets(journal: JournalRuns) -> None:
    binding = given_taken_over(journal)
    given_stopped(journal)
    plan = hand_back(journal, binding.t + binding.width + 1).plan(WRITER)
    plan.execute(AuditEntry(plan.action, "ann", "back to them", binding.t))
    assert committed(journal) == {0: 5, 1: 5, 2: 5}


def test_the_command_shows_its_plan_and_needs_to_be_told_to_do_it(journal: JournalRuns) -> None:
    given_taken_over(journal)
    given_stopped(journal)
    command = ("journal", "hand-back", journal.runs.name, WRITER)

    # A plan changes nothing.
    plan = journal.runs.command(*command)
    assert (plan.code, "Nothing was changed. Add --execute" in plan.out) == (0, True), plan
    assert committed(journal) == {0: None, 1: None, 2: None}

    # Done, it is on record, and the gate stays closed.
    done = journal.runs.command(*command, "--execute", "--reason", "back to them", "--by", "ann", "--json")
    assert (done.code, json.loads(done.out)["executed"]) == (0, True), done
    assert committed(journal) == {0: 5, 1: 5, 2: 5}
    deeds = opened(journal).positions.deeds(WRITER)
    assert ("hand back", "ann", "back to them") in [(deed.what, deed.who, deed.reason) for deed in deeds]
    state = opened(journal).state(WRITER)
    assert state is not None
    assert state.gate is not None


def test_i17_a_head_that_their_delete_made_is_no_alarm_when_event_1_comes_to_us(
    journal: JournalRuns,
) -> None:
    given_their_tables(journal, {0: 4, 1: 4, 2: 4})
    now = datetime.now(UTC)
    journal.session.execute(  # a delete up to 3 of an entity that they never saw an event of
        f"INSERT INTO {journal.keyspace}.metajournal (topic, segment, id, partition, offset, segment_size, "
        "seq_nr, delete_to, created, updated) VALUES (%s, %s, 'deleted', 0, 4, 10000, 3, 3, %s, %s)",
        (journal.topic, head_segment("deleted"), now, now),
    )
    events = Events((EncodedEvent(1, (), "text", "event 1"),))
    for key in ("deleted", "fresh"):
        record = write_action(append(key, SENT_AT + 9, events))
        send(journal.runs.connections, journal.topic, [Sent(0, *record)])
    bind(journal)
    publish_here(journal.runs, "run-1")
    deliver(journal)

    # The tables are right: the event is deleted already. The log alone cannot know that.
    both = ("--entity", "deleted", "--entity", "fresh")
    verified = journal.runs.command("journal", "verify", journal.runs.name, WRITER, *both, "--json")
    found = json.loads(verified.out)
    assert (verified.code, found["clean"], found["same"]) == (0, True, 1), verified
    assert found["unproven"] == [
        {"topic": journal.topic, "key": "deleted", "reason": "began before the log"}
    ], found

    # What began with us is proved still, and the way out is not a rebuild that the log cannot give.
    journal.session.execute(
        f"DELETE FROM {journal.keyspace}.journal WHERE id = 'fresh' AND topic = %s AND segment = 0",
        (journal.topic,),
    )
    damaged = journal.runs.command("journal", "verify", journal.runs.name, WRITER, "--entity", "fresh")
    assert (damaged.code, "event 1 is missing" in damaged.out) == (1, True), damaged
    assert "the log is not whole (it begins at offset 5" in " ".join(damaged.out.split()), damaged


# And once more


def person(journal: JournalRuns, *command: str, fault: FaultPoint | None = None) -> Ended:
    """A command about the writer, given by a person who means it."""
    group, action = command
    place = (journal.runs.name, WRITER)
    return journal.runs.command(group, action, *place, "--execute", "--reason", "to test it", fault=fault)


def given_handed_back(journal: JournalRuns) -> None:
    """Ours up to offset 4; then the replicator has written offset 5, and offset 6 is new."""
    given_taken_over(journal)
    given_stopped(journal)
    assert person(journal, "journal", "hand-back").code == 0
    send(journal.runs.connections, journal.topic, [given_record(p, n) for n in (6, 7) for p in range(3)])
    given_their_tables(journal, {0: 5, 1: 5, 2: 5})


def replicate(journal: JournalRuns, run_id: str) -> Binding:
    binding = bind(journal, run_id)
    publish_here(journal.runs, run_id)
    deliver(journal)
    return binding


def test_i18_a_writer_that_handed_back_goes_on_by_a_take_over_only(journal: JournalRuns) -> None:
    """Item 18: the next binding reaches past the replicator's pointers, and opening the gate was enough."""
    given_handed_back(journal)

    refused = person(journal, "gate", "open")
    assert (refused.code, "tidemark journal take-over" in refused.err) == (1, True), refused
    shown = journal.runs.command("gate", "show", journal.runs.name)
    assert f"tidemark journal take-over {journal.runs.name} {WRITER}" in shown.out

    assert person(journal, "journal", "take-over").code == 0
    binding = replicate(journal, "run-2")

    # The log is whole; what they wrote was passed, what follows is written, later than anything of theirs.
    assert [(s.lower, s.upper) for s in binding.slices] == [(5, 7)] * 3
    numbers = {key: sorted(n for _, n, _ in entity["rows"]) for key, entity in journal.visible.items()}
    assert numbers == {f"entity-{partition}": [1, 2, 3, 4, 5, 6, 7] for partition in range(3)}
    assert {entity["seq_nr"] for entity in journal.visible.values()} == {7}
    assert journal.pointers == {0: 6, 1: 6, 2: 6}


def test_i18_a_replicator_that_is_at_work_on_a_later_run_stops_the_writer(journal: JournalRuns) -> None:
    given_taken_over(journal)
    with running_replicator(journal):
        with pytest.raises(ReplicatorRuns):
            bind(journal, "run-2")
        refused = person(journal, "journal", "take-over")
        assert (refused.code, "has members" in refused.err) == (1, True), refused
    state = opened(journal).state(WRITER)
    assert state is not None
    assert state.gate is not None
    assert state.gate.cause is Cause.REPLICATOR

    assert person(journal, "journal", "take-over").code == 0
    send(journal.runs.connections, journal.topic, [given_record(0, 6)])
    replicate(journal, "run-3")
    assert journal.pointers == {0: 5, 1: 4, 2: 4}


def test_i18_a_hand_back_and_a_take_over_that_are_killed_are_finished_by_the_same_command(
    journal: JournalRuns,
) -> None:
    given_taken_over(journal)
    given_stopped(journal)
    assert person(journal, "journal", "hand-back", fault=FaultPoint.HAND_BACK_RECORDED).code == -SIGKILL
    assert committed(journal) == {0: None, 1: None, 2: None}
    assert person(journal, "gate", "open").code == 1
    assert person(journal, "journal", "hand-back").code == 0
    assert committed(journal) == {0: 5, 1: 5, 2: 5}

    assert person(journal, "journal", "take-over", fault=FaultPoint.TAKE_OVER_DATED).code == -SIGKILL
    assert person(journal, "gate", "open").code == 1
    assert person(journal, "journal", "take-over").code == 0
    state = opened(journal).state(WRITER)
    assert state is not None
    assert (state.gate, state.handed_back) == (None, None)
