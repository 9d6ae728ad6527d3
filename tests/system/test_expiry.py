"""Expired entities on real Kafka and Cassandra: races, stalls, deaths, and what is left of the purged."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pyarrow.parquet as pq
import pytest
from kafka import KafkaConsumer, TopicPartition
from tests.support.services.broker import stalled
from tests.support.services.expiry_runs import (
    PIPELINE,
    WRITER,
    ExpiryRuns,
    Interrupted,
    appended,
    day,
    expired,
    expiring_at,
    purges_of,
)
from tests.support.services.journal_runs import read_all_visible
from tests.support.services.journal_world import given_keyspace
from tests.support.services.log_runs import LogRuns, deliver_here, publish_here

from tidemark.compaction.compact import Compacted, Compaction
from tidemark.compaction.engine import InProcess
from tidemark.compaction.inputs import CompactionSettings, Questions
from tidemark.connections import Connections
from tidemark.expiry.days import days_ended_between
from tidemark.expiry.errors import AppendsPurged, KafkaFailed
from tidemark.expiry.purge_sender import PurgeSender
from tidemark.expiry.state import read_days, runs
from tidemark.faults import FaultPoint
from tidemark.journal.action import Action, Purge
from tidemark.log.state.pins import pins, release_pin
from tidemark.log.sweep import sweep_log

pytestmark = pytest.mark.system

PRAGUE = ZoneInfo("Europe/Prague")


class Place:
    """A pipeline of one test with two topics, and everything that happens to it."""

    def __init__(self, services: Any, root: Path, keyspace: str, zone: str) -> None:
        self.services, self.root, self.keyspace = services, root, keyspace
        self.name = f"expiry-{uuid4().hex[:8]}"
        self.topics = [f"{self.name}-a", f"{self.name}-b"]
        for topic in self.topics:
            services.create_topic(topic, partitions=2)
        topics = ", ".join(self.topics)
        text = PIPELINE.format(name=self.name, folder=root, keyspace=keyspace, zone=zone, topics=topics)
        (root / "pipelines").mkdir()
        (root / "pipelines" / "expiry.yaml").write_text(text)
        connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
        self.log = LogRuns(self.name, root, connections)
        self.expiry = ExpiryRuns(self.name, connections)

    def send(self, *actions: Action, topic: int = 0) -> None:
        self.services.send(self.topics[topic], list(actions))

    def replicate(self) -> None:
        publish_here(self.log, uuid4().hex)
        deliver_here(self.expiry.opened, WRITER)

    @property
    def entities(self) -> set[str]:
        """The entities that can be read."""
        found = read_all_visible(self.services.session, self.keyspace)
        return {key for of_topic in found.values() for key in of_topic}

    @property
    def purges(self) -> list[str]:
        """The keys of all purges in Kafka, in their order."""
        return [key for topic in self.topics for key in purges_of(self._messages(topic))]

    def _messages(self, topic: str) -> list[Any]:
        found: list[Any] = []
        with KafkaConsumer(**self.services.kafka.client_options()) as consumer:
            places = [TopicPartition(topic, partition) for partition in (0, 1)]
            ends = consumer.end_offsets(places)
            consumer.assign(places)
            consumer.seek_to_beginning(*places)
            while any(consumer.position(place) < ends[place] for place in places):
                found += [one for some in consumer.poll(1000).values() for one in some]
        return found


@pytest.fixture
def place(
    services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Place]:
    monkeypatch.setenv("TIDEMARK_PIPELINES", str(tmp_path / "pipelines"))
    with given_keyspace(services.cassandra, "expiry") as keyspace:
        yield Place(services, tmp_path, keyspace, getattr(request, "param", "UTC"))


@pytest.mark.parametrize("place", ["Europe/Prague"], indirect=True)
def test_a_day_of_25_hours_is_one_day_in_the_zone_of_the_pipeline(place: Place) -> None:
    # Given: entities that expired in the first and in the last hour of the day, and right behind it.
    moments = {"first": "2026-10-24T22:30", "last": "2026-10-25T22:30", "behind": "2026-10-25T23:30"}
    for key, moment in moments.items():
        place.send(expiring_at(key, datetime.fromisoformat(moment).replace(tzinfo=UTC)))
    place.replicate()

    # When: the run for the interval of that day purges.
    start, end = (datetime(2026, 10, number, tzinfo=PRAGUE) for number in (25, 26))
    days = days_ended_between(*(int(one.timestamp() * 1_000_000) for one in (start, end)), PRAGUE)
    assert days == (date(2026, 10, 25),)
    run = place.expiry.plan(*days)
    run.purge()
    place.replicate()

    # Then: the 25 hours of the day are over, and the next day's entity is still there.
    assert run.report(days)["purged"] == 2
    assert place.entities == {"behind"}


def test_an_append_before_the_last_look_saves_its_entity_and_one_behind_it_is_pinned(
    place: Place,
) -> None:
    # Given: of three expired entities, one is extended after the plan, and one after the last look.
    place.send(expired("early"), expired("late", 2), expired("gone"))
    place.replicate()
    days = (day(2), day(1))
    run = place.expiry.plan(*days, happen=lambda: place.send(appended("late", seq_nr=2)))
    place.send(appended("early", seq_nr=2))

    # When: the run purges, and what it sent is replicated.
    done = run.purge()
    place.replicate()

    # Then: the first is left alone; the run fails because of the second, wherever its search is killed.
    assert {(one.key, one.why.value) for one in done.spared} == {("early", "a newer append")}
    assert place.expiry.step("report", FaultPoint.EXPIRY_PINNED, days) == -9
    with pytest.raises(AppendsPurged, match="tidemark log unpin") as failed:
        place.expiry.run().report(days)
    (lost,) = failed.value.found
    assert [pin.id for pin in pins(place.log.control)] == [lost.id]
    assert place.entities == {"early"}

    # And: compaction leaves it, so a person can append its events again; then the run is over.
    place.send(appended("next"))
    place.replicate()
    compact(place)
    parquet = [path for path in files_of(place) if path.suffix == ".parquet"]
    kept = [row for path in parquet for row in rows_of(path) if row["id"] == lost.id]
    assert {row["key"] for row in kept} == {b"late"}
    assert b"payload of late" in kept[0]["value"]
    release_pin(place.log.control, lost.id, "ann", "brought back", 1)
    report = place.expiry.run().report(days)
    assert (report["purged"], report["left_alone"]) == (2, {"a newer append": 1})


def test_a_broker_that_stalls_in_the_middle_costs_nothing(place: Place) -> None:
    place.send(*(expired(f"k{number}") for number in range(20)))
    place.replicate()
    impatient = PurgeSender(place.name, "run-1", place.services.kafka, patience=1.5)
    with ExitStack() as stack:
        stall = Interrupted(impatient, lambda: stack.enter_context(stalled(place.services)))
        with pytest.raises(KafkaFailed, match="0 of 20 purges were acknowledged"):
            replace(place.expiry.plan(day(1)), sender=stall).purge()

    again = place.expiry.run().purge()
    place.replicate()
    assert len(again.sent) == 20
    assert Counter(place.purges) == {f"k{number}": 1 for number in range(20)}
    assert place.expiry.run().report([day(1)])["purged"] == 20


def test_a_run_that_is_killed_at_every_point_sends_every_purge_once(place: Place) -> None:
    # Given: three missed days, entities in two topics, and one that has not expired.
    place.send(expired("a3", 3), expired("a2", 2), appended("kept"))
    place.send(expired("b1", 1), topic=1)
    place.replicate()
    days = [day(back) for back in (3, 2, 1)]

    # When: every process dies at the next point, and the next one goes on.
    steps = {
        "plan": (FaultPoint.EXPIRY_OPENED, FaultPoint.EXPIRY_PLANNED),
        "purge": (
            FaultPoint.EXPIRY_HELD,
            FaultPoint.EXPIRY_INTENDED,  # nothing of the first topic is sent yet
            FaultPoint.EXPIRY_RECOVERED,
            FaultPoint.EXPIRY_RECORDED,  # the first topic is done
            FaultPoint.EXPIRY_SENT,  # the second is sent, and not recorded
        ),
        "report": (
            FaultPoint.EXPIRY_REPORTED,
            FaultPoint.EXPIRY_RELEASED,
            FaultPoint.EXPIRY_FORGOTTEN,
        ),
    }
    for step, points in steps.items():
        for point in points:
            assert place.expiry.step(step, point, days) == -9, point
        if step == "purge":
            assert len(place.expiry.run().purge().sent) == 3
            place.replicate()
            assert place.expiry.run().waiting() == {}
    report = place.expiry.run().report(days)

    # Then: one purge each, one line of history, nothing left to ask.
    assert sorted(place.purges) == ["a2", "a3", "b1"]
    assert [(one["day"], one["purged"]) for one in report["days"]] == [(str(one), 1) for one in days]
    assert place.entities == {"kept"}
    assert [row["purged"] for row in runs(place.log.control)] == [3]
    assert read_days(place.log.control, WRITER).unfinished == ()


def test_a_run_repeated_has_no_effect_and_after_compaction_nothing_of_the_purged_is_left(
    place: Place,
) -> None:
    # Given: a run that is over.
    place.send(expired("marker-gone"), appended("marker-kept"))
    place.replicate()
    place.expiry.plan(day(1)).purge()
    place.replicate()
    first = place.expiry.run().report([day(1)])

    # When: it is repeated as it was, and under another name; and a second purge comes from somewhere.
    again = place.expiry.plan(day(1))
    assert again.purge().sent == ()
    assert again.report([day(1)])["purged"] == first["purged"] == 1
    assert place.expiry.plan(day(1), name="run-2").find([day(1)]) == []
    before = place.entities
    place.send(Purge("marker-gone", 1, "run-1"))
    place.replicate()

    # Then: nothing has changed, and the files say nothing of the entity when compaction and grace are over.
    assert place.purges == ["marker-gone", "marker-gone"]
    assert place.entities == before == {"marker-kept"}
    assert len(runs(place.log.control)) == 1
    place.send(appended("marker-next"))
    place.replicate()
    assert files_with(place, b"marker-gone")
    compact(place)
    for _ in range(2):
        sweep_log(place.log.control, place.log.folder, "test", 0)
    assert files_with(place, b"marker-kept")
    assert files_with(place, b"marker-gone") == []


def test_spark_finds_what_one_process_finds(place: Place) -> None:
    place.send(*(expired(f"k{number}", 1 + number % 2) for number in range(100)), appended("kept"))
    place.replicate()
    days = [day(2), day(1), day(3)]
    arguments = ["--writer", WRITER, "--run", "run-1", "--days", ",".join(map(str, days)), "--ceiling", "100"]
    ended = place.log.find_expired(*arguments)
    assert ended.code == 0, ended.err
    run = place.expiry.run()
    assert ended.summary["days"] == {str(day(3)): 0, str(day(2)): 50, str(day(1)): 50}
    assert ended.summary["first"] == [one.to_dict() for one in run.find(days)]
    assert run._record.planned() == run.find(days)


def compact(place: Place) -> None:
    """By policy ``journal``, without waiting; the last binding is in the active segment and stays."""
    control, positions = place.log.control, place.expiry.opened.positions
    settings = CompactionSettings("journal", 0, 0, 1, (WRITER,))
    questions = Questions(control, positions, place.log.pipeline.log.path, settings)
    head = control.bindings_head()
    control.advance_upper(head, head.upper + 1)
    assert isinstance(Compaction(questions, InProcess()).run("test"), Compacted)


def rows_of(file: Path) -> list[dict[str, Any]]:
    """The messages of a file of the log."""
    rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    return rows


def files_of(place: Place) -> list[Path]:
    """All files of the log, also those that nothing names any more."""
    return sorted(path for path in Path(place.log.pipeline.log.path).rglob("*") if path.is_file())


def files_with(place: Place, marker: bytes) -> list[str]:
    """The files of the log whose bytes have it, compressed or not."""

    def has_it(path: Path) -> bool:
        return marker in path.read_bytes() or (
            path.suffix == ".parquet" and marker in json.dumps(rows_of(path), default=repr).encode()
        )

    return [str(path.relative_to(place.log.pipeline.log.path)) for path in files_of(place) if has_it(path)]
