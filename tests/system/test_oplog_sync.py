"""Synchronisation of a topic of operations with a dump of its source, on real services."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.services.log_runs import declare_log
from tests.support.services.sync_runs import PARTITIONS, WRITER, SyncRuns
from tests.support.waiting import wait_until

from tidemark.cassandra.session import connect
from tidemark.connections import Connections
from tidemark.faults import FaultPoint
from tidemark.oplog.sync.report import corrections_of

pytestmark = pytest.mark.system

START = "1970-01-01T00:00:12Z"


@pytest.fixture
def events(services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SyncRuns]:
    """A pipeline of the test's own, with an empty topic."""
    name = f"events_{uuid4().hex[:8]}"
    services.create_topic(name, partitions=PARTITIONS)
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    source = f'topics: ["{name}"], format: oplog'
    yield SyncRuns(declare_log(tmp_path, name, connections, monkeypatch, source, writer=WRITER))
    connect(services.cassandra).execute(f"DROP KEYSPACE IF EXISTS {name}", timeout=60)


def test_a_dump_is_compared_sent_and_verified_and_once_more_sends_nothing(events: SyncRuns) -> None:
    # Given: objects of which every kind of difference exists.
    events.send(
        ("same", "insert", 10, ["user/u"]),
        ("older", "update", 9),
        ("moved", "insert", 10, ["user/u"]),
        ("dropped", "insert", 9, ["user/u"]),
        ("newer", "update", 13),
        ("wrongly_deleted", "delete", 11),
        ("gone", "delete", 9),
    )
    events.replicate("run-1")
    dump = events.dump(
        ("same", 10, ["user/u"]),
        ("older", 10),
        ("moved", 10, ["user/v"]),
        ("missing", 10, ["user/u"]),
        ("wrongly_deleted", 10),
    )

    # When: it is compared, and an object changes before the corrections are sent.
    diff = events.compare(dump, START)
    assert diff.outcomes == {
        "insert": 1,
        "insert_deleted": 1,
        "update": 1,
        "update_parents": 1,
        "delete": 1,
        "same": 1,
        "inserted_since": 1,
        "gone": 1,
    }
    events.send(("older", "update", 20))
    sent = events.sync.send(diff)

    # Then: what has changed meanwhile is left alone, everything else is as in the dump.
    assert (sent.sent, sent.overtaken) == (4, 1)
    events.replicate("run-2")
    verified = events.sync.verify(diff)
    assert (verified.as_sent, verified.changed_since, verified.missing) == (4, 1, 0)
    assert events.objects(["same", "older", "moved", "missing", "wrongly_deleted", "dropped"]) == {
        "same": (False, 10, ("user/u",)),
        "older": (False, 20, ()),
        "moved": (False, 10, ("user/v",)),
        "missing": (False, 10, ("user/u",)),
        "wrongly_deleted": (False, 10, ()),
        "dropped": (True, 11, ("user/u",)),
    }
    events.sync.report(diff.key, diff.t, verified)

    # And: the same dump once more finds nothing to correct.
    again = events.compare(dump, START)
    assert corrections_of(again) == 0
    assert [one["sent"] for one in events.sync.files.reports()] == [4]


def test_R34_R35_a_sender_that_is_killed_repeatedly_sends_every_correction_once(
    events: SyncRuns,
) -> None:
    # Given: an empty topic, which a dump fills.
    ids = [f"x{number}" for number in range(9)]
    diff = events.compare(events.dump(*((id_, 10) for id_ in ids)), START)
    assert diff.t == 0

    # When: every attempt is killed after its first batch of two, or before it.
    for _ in range(3):
        assert events.send_killed(diff, FaultPoint.SYNC_BATCH_SENT) == -9
    assert events.send_killed(diff, FaultPoint.SYNC_BATCH_READ) == -9
    sent = events.sync.send(diff)

    # Then: readers of the topic see every object inserted once, and so does the collection.
    assert (sent.sent, sent.overtaken) == (9, 0)
    valid = events.readers_view().valid(diff.topic_id)
    assert Counter(one.operation.id for _, one in valid) == Counter(ids)
    events.replicate("run-1")
    assert events.sync.verify(diff).as_sent == 9


def test_R28_H12_the_script_fills_an_empty_topic_while_the_pipeline_is_replicated(events: SyncRuns) -> None:
    # Given: nothing but a topic and a dump.
    dump = events.dump(("a", 10), ("b", 10, ["user/u"]))

    # When: without --execute, it only shows its plan.
    with events.script(dump, "--start", "newest", "--json") as shown:
        out, err = shown.communicate(timeout=240)
    assert shown.returncode == 0, err
    assert (json.loads(out)["corrections"], json.loads(out)["executed"]) == (2, False)
    assert events.readers_view().valid() == []

    # When: it is executed, and waits until its corrections are delivered.
    arguments = (dump, "--start", "newest", "--execute", "--reason", "first load", "--json")
    with events.script(*arguments) as running:
        rounds = iter(range(1_000))

        def is_over() -> bool:
            events.replicate_if_new(f"run-{next(rounds)}")
            return running.poll() is not None

        wait_until(is_over, 240, "the end of the synchronisation")
        out, err = running.communicate()

    # Then: both objects are there, and the report says so.
    assert running.returncode == 0, err
    assert (json.loads(out)["sent"], json.loads(out)["as_sent"]) == (2, 2)
    assert events.objects(["a", "b"]) == {"a": (False, 10, ()), "b": (False, 10, ("user/u",))}
    assert [one.reason for one in events.runs.control.decisions()] == ["first load"]


def test_S15_S19_what_is_refused_sends_nothing(events: SyncRuns) -> None:
    # Given: more objects than a dump has.
    events.send(*((f"x{number}", "insert", 9) for number in range(30)))
    events.replicate("run-1")
    dump = Path(events.dump(("x1", 9)))

    # When: too many would be deleted.
    refused = events.runs.command("oplog", "sync", events.runs.name, str(dump), "--start", START, "--json")
    assert refused.code == 0, refused.err
    arguments = ("--start", START, "--execute", "--reason", "drift")
    refused = events.runs.command("oplog", "sync", events.runs.name, str(dump), *arguments)
    assert refused.code == 1
    assert "29 of 30 objects" in refused.err

    # When: a line is bad.
    dump.write_text(dump.read_text() * 2 + "{nope\n")
    refused = events.runs.command("oplog", "sync", events.runs.name, str(dump), *arguments)
    assert refused.code == 1
    assert "line 3" in refused.err

    # Then: nothing was sent.
    assert [one for _, one in events.readers_view().valid() if one.correction] == []
