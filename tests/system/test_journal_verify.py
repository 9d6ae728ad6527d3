"""A journal in Cassandra proved against its log, damaged by hand, rebuilt next to the damage and compared.

One story for all tests: a history is delivered, compared with a rebuilt keyspace, damaged in every way there
is, and looked at again.
"""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.services.journal_histories import History
from tests.support.services.journal_runs import SEGMENT_SIZE, differences, given_topic, read_visible, send
from tests.support.services.journal_world import CassandraJournalWorld, Record, given_keyspace
from tests.support.services.log_runs import LogRuns, declare_log, publish_here, spark_environ

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.cassandra.session import connect
from tidemark.cli.journal.verify import pipeline_spark
from tidemark.connections import Connections
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.delivery.deliver import deliver_to
from tidemark.journal.action import Action, Delete, Purge, append
from tidemark.journal.codec.record import write_action
from tidemark.journal.difference import DifferenceKind
from tidemark.journal.events import EncodedEvent, Events
from tidemark.journal.segments import head_segments
from tidemark.log.model.binding import Binding
from tidemark.spark.jobs.diff import diff_with_spark
from tidemark.spark.jobs.verify import verify_with_spark
from tidemark.verification.diff import Diff
from tidemark.verification.journal.entities import verify_entities
from tidemark.verification.journal.provable import Unprovable
from tidemark.verification.result import Verification
from tidemark.verification.selection import EntitySelection

pytestmark = pytest.mark.system

OLD, NEW = "old", "rebuilt"
WRITERS = (
    f"name: {OLD}, kind: journal, keyspace: {{0}}, segment_size: {SEGMENT_SIZE}}}\n"
    f"  - {{name: {NEW}, kind: journal, keyspace: {{0}}_new, segment_size: {SEGMENT_SIZE}"
)
SEED = 7
ACTIONS = 2_000
ENTITIES = 80
SAMPLE = 10
DAMAGED = ("row missing", "row changed", "row extra", "head too old", "head missing")


@dataclass
class Story:
    """What happened, and what was found."""

    runs: LogRuns
    topic: str
    keyspace: str
    bindings: list[Binding]
    entities: dict[str, str]
    """Those that were damaged, by what was done to them."""
    compared: Diff
    """Before the damage."""
    unchanged: dict[str, Any]
    """What a reader can tell between the rebuilt keyspace and the old one before the damage."""
    by_all: Verification
    by_interval: Verification
    rebuilt: Verification
    compared_damaged: dict[str, Any]
    """What the application says of both after the damage."""

    @property
    def opened(self) -> OpenPipeline:
        return OpenPipeline(self.runs.pipeline, self.runs.connections)

    def of_damage(self, what: str) -> str:
        return self.entities[what]


def deliver(opened: OpenPipeline, name: str) -> None:
    delivered = deliver_to(
        opened.writer(name),
        opened.log,
        opened.positions,
        "test",
        write_parts_here,
        limit=10**9,
        reload=lambda: opened.positions.load(name),
    )
    assert (delivered.gate, delivered.position) == (None, opened.log.end)


def damage(session: Any, keyspace: str, topic: str) -> dict[str, str]:
    """Do every kind of damage to an entity of its own, and move a pointer too far; which ones they are."""
    visible = read_visible(session, keyspace, topic)
    chosen = [key for key, one in sorted(visible.items()) if len(one["rows"]) > 2][: len(DAMAGED)]
    entities = dict(zip(DAMAGED, chosen, strict=True))
    of_row = "WHERE id = %s AND topic = %s AND segment = %s AND seq_nr = %s AND timestamp = %s"
    of_head = "WHERE topic = %s AND segment = %s AND id = %s"

    def row(what: str) -> tuple[Any, ...]:
        segment, seq_nr, timestamp = sorted(visible[entities[what]]["rows"])[1]
        return entities[what], topic, segment, seq_nr, timestamp

    def head(what: str) -> tuple[Any, ...]:
        rows = f"SELECT segment FROM {keyspace}.metajournal {of_head}"
        places = [(topic, segment, entities[what]) for segment in head_segments(entities[what])]
        return next(place for place in places if session.execute(rows, place).one())

    session.execute(f"DELETE FROM {keyspace}.journal {of_row}", row("row missing"))
    changed = f"UPDATE {keyspace}.journal SET payload_type = 'text', payload_txt = 'changed' {of_row}"
    session.execute(changed, row("row changed"))
    key = entities["row extra"]
    found = session.execute(f"SELECT * FROM {keyspace}.metajournal {of_head}", head("row extra")).one()
    extra = f"UPDATE {keyspace}.journal SET meta_record_id = %s, partition = %s, offset = %s {of_row}"
    number = found.seq_nr + 1
    place = (key, topic, (number - 1) // SEGMENT_SIZE, number, 1)
    session.execute(extra, (found.record_id, found.partition, found.offset, *place))
    older = f"UPDATE {keyspace}.metajournal SET seq_nr = %s, offset = %s {of_head}"
    entity = visible[entities["head too old"]]
    session.execute(older, (entity["seq_nr"] - 1, 0, *head("head too old")))
    session.execute(f"DELETE FROM {keyspace}.metajournal {of_head}", head("head missing"))
    pointer = f"UPDATE {keyspace}.pointer2 SET offset = 99999 WHERE topic = %s AND partition = 0"
    session.execute(pointer, (topic,))
    return entities


def drop(services: Any, keyspace: str) -> None:
    """With a session of its own: a command closes those that there are."""
    connect(services.cassandra).execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=60)


@pytest.fixture(scope="module")
def story(services: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    topic, history = f"proved-{uuid4().hex[:8]}", History(SEED, ENTITIES)
    keyspace, root = topic.replace("-", "_"), tmp_path_factory.mktemp("proved")
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    session = connect(services.cassandra)
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in spark_environ().items():
            patch.setenv(name, value)
        stack.enter_context(given_topic(connections, topic))
        for name in (keyspace, f"{keyspace}_new"):
            stack.callback(drop, services, name)
        writers = WRITERS.replace("{0}", keyspace).replace("}\n  - {", "}}\n  - {{")
        runs = declare_log(root, topic, connections, patch, source=f'topics: ["{topic}"]', writer=writers)
        bindings = []
        for number in range(2):
            send(connections, topic, history.go_on(ACTIONS // 2))
            bindings.append(publish_here(runs, f"run-{number}"))
        opened = OpenPipeline(runs.pipeline, connections)
        deliver(opened, OLD)
        before = read_visible(session, keyspace, topic)
        with pipeline_spark(opened, "story") as spark:
            old, new = opened.journal(OLD), opened.journal(NEW)

            deliver(opened, NEW)
            compared = diff_with_spark(spark, old, new, opened.log, opened.positions)
            entities = damage(session, keyspace, topic)
            by_all, by_interval, rebuilt = (
                verify_with_spark(spark, writer, opened.log, opened.positions, selection)
                for writer, selection in (
                    (old, EntitySelection()),
                    (old, EntitySelection(from_t=bindings[1].t, to_t=bindings[1].t, sample=SAMPLE)),
                    (new, EntitySelection()),
                )
            )
        # An application of its own: a process has sessions of one kind of engine at a time.
        compared_damaged = runs.verify("--keyspaces", f"{keyspace},{keyspace}_new")
        unchanged = differences(read_visible(session, f"{keyspace}_new", topic), before)
        yield Story(
            *(runs, topic, keyspace, bindings, entities, compared, unchanged, by_all, by_interval, rebuilt),
            compared_damaged.summary,
        )


def found_of(found: Verification, key: str) -> set[DifferenceKind]:
    return {one.kind for one in found.differences if one.key == key}


EXPECTED = {
    "row missing": {DifferenceKind.ROW_MISSING},
    "row changed": {DifferenceKind.ROW_DIFFERS},
    "row extra": {DifferenceKind.ROW_EXTRA},
    "head too old": {DifferenceKind.HEAD_DIFFERS},
    "head missing": {DifferenceKind.HEAD_MISSING},
}


def test_a_rebuilt_keyspace_is_the_same_and_readers_may_be_switched(story: Story) -> None:
    assert (story.compared.is_same, story.compared.obstacles) == (True, ())
    assert list(story.compared.topics) == [story.topic]


@pytest.mark.parametrize("what", DAMAGED)
def test_damage_is_found_among_all_entities(story: Story, what: str) -> None:
    assert found_of(story.by_all, story.of_damage(what)) == EXPECTED[what]


def test_only_what_was_damaged_is_called_wrong(story: Story) -> None:
    assert {one.key for one in story.by_all.differences if one.key} == set(story.entities.values())
    assert (story.by_all.different, story.by_all.pointers_wrong) == (len(DAMAGED), 1)


def test_damage_says_what_it_is(story: Story) -> None:
    said = {one.key: str(one) for one in story.by_all.differences}
    assert "was changed: payload_t" in said[story.of_damage("row changed")]
    assert "the head is too old: offset 0" in said[story.of_damage("head too old")]
    assert "the head is missing" in said[story.of_damage("head missing")]
    assert f"{story.topic}/0: pointer2 is too far: 99999 instead of" in said[None]


@pytest.mark.parametrize("what", DAMAGED)
def test_damage_is_found_when_one_entity_is_looked_at(story: Story, what: str) -> None:
    opened, key = story.opened, story.of_damage(what)
    found = verify_entities(opened.journal(OLD), opened.log, opened.positions, [key])
    assert found_of(found, key) == EXPECTED[what]
    assert [one.kind for one in found.differences if one.key is None] == [DifferenceKind.POINTER_TOO_FAR]


def test_of_an_interval_so_many_entities_are_looked_at_as_were_asked_for(story: Story) -> None:
    found = story.by_interval
    assert SAMPLE // 2 < found.entities <= SAMPLE  # an entity with nothing but marks does not count
    assert {one.key for one in found.differences if one.key} <= set(story.entities.values())
    assert (found.pointers, found.pointers_wrong) == (3, 1)


def test_a_rebuilt_keyspace_verifies_clean_and_is_what_the_old_one_was(story: Story) -> None:
    found = story.rebuilt
    assert (found.is_clean, found.writer, found.not_provable) == (True, NEW, {})
    assert found.same == found.entities >= ENTITIES - 5
    assert story.unchanged == {}


def test_a_damaged_keyspace_is_not_the_same_as_the_rebuilt_one(story: Story) -> None:
    found = story.compared_damaged
    assert {one["key"] for one in found["differences"]} == set(story.entities.values())
    assert (found["ok"], found["safe"]) == (True, False)
    assert f"{len(DAMAGED)} entities are different" in found["obstacles"]
    assert any("at 99999" in obstacle for obstacle in found["obstacles"])


# By hand


def test_one_entity_is_verified_by_hand_without_spark(story: Story) -> None:
    key = story.of_damage("row changed")
    ended = story.runs.command("journal", "verify", story.topic, OLD, "--entity", key, "--json")
    found = json.loads(ended.out)
    assert (ended.code, found["clean"], found["entities"]) == (1, False, 1)
    assert {one["kind"] for one in found["differences"]} == {"row differs", "pointer too far"}


def test_a_history_shows_what_was_done_and_what_is_visible(story: Story) -> None:
    key = story.of_damage("row missing")
    ended = story.runs.command("journal", "history", story.topic, key, "--writer", OLD, "--json")
    (found,) = json.loads(ended.out)
    assert (ended.code, found["key"], found["verdict"]) == (0, key, "different")
    assert found["steps"][0]["id"] < found["steps"][-1]["id"]
    assert {step["standing"] for step in found["steps"]} <= {"applied", "no action"}
    assert found["head"]["seq_nr"] > 0
    shown = story.runs.command("journal", "history", story.topic, key, "--writer", OLD)
    assert "Readers see" in shown.out


def test_a_name_that_is_mistyped_is_said(story: Story) -> None:
    ended = story.runs.command("journal", "verify", story.topic, OLD, "--entity", "no-such-entity")
    assert (ended.code, "neither the log" in ended.err) == (1, True)
    ended = story.runs.command("journal", "verify", story.topic)
    assert (ended.code, f"there is: {OLD}, {NEW}" in ended.err) == (1, True)


# What cannot be proved


def appended(key: str, first: int, last: int) -> Action:
    events = tuple(EncodedEvent(number, (), "text", f"{key} {number}") for number in range(first, last + 1))
    return append(key, 0, Events(events))


def test_histories_that_began_before_the_log_are_not_provable(services: Any, tmp_path: Path) -> None:
    actions = (appended("cut", 3, 4), appended("new", 1, 2), Delete("old", 0, 2), Purge("gone", 0))
    with given_keyspace(services.cassandra, "unproved") as keyspace:
        house = CassandraJournalWorld(tmp_path, services.cassandra, keyspace, SEGMENT_SIZE)
        records = []
        for offset, action in enumerate(actions, start=5):
            key, value, _, headers = write_action(action)
            records.append(Record("t", 0, offset, key, value, 1_750_000_000_000 + offset, headers))
        house.publish(time.time_ns() // 1000, records)
        house.deliver()
        keys = ["cut", "new", "old", "gone"]
        found = verify_entities(house.writer, house.log, house.positions, keys)
    assert found.is_clean
    assert {one.key: one.reason for one in found.unproven} == dict.fromkeys(
        ("cut", "old"), Unprovable.BEFORE_THE_LOG
    )
    assert found.same == 2
