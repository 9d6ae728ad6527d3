"""A topic made again under its name, whose new offsets have passed the old pointer: no answer is wrong."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.services.journal_runs import WRITER, JournalRuns, given_journal, given_topic, make_again
from tests.support.services.log_runs import publish_here

from tidemark import Event, Journal
from tidemark.client.errors import TopicRecreated
from tidemark.connections import Connections

pytestmark = pytest.mark.system


@pytest.fixture
def runs(services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JournalRuns]:
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    name = f"again-{uuid4().hex[:8]}"
    with (
        given_topic(connections, name, 1) as topic,
        given_journal(tmp_path, connections, topic, name, monkeypatch) as runs,
    ):
        yield runs


def given_events(journal: Journal, key: str, count: int) -> None:
    for number in range(1, count + 1):
        journal.append(key, [Event.text(number, f"event {number}")])


def test_a_topic_made_again_is_refused_by_readers_and_by_append(runs: JournalRuns) -> None:
    """Item 2: by the commands, by a client that lives since before, by one that names no pipeline."""
    known, name = runs.runs.connections, runs.runs.name
    ends: dict[str, Any] = {"kafka": known.kafka, "cassandra": known.control}
    with Journal(runs.topic, keyspace=runs.keyspace, **ends) as living:
        given_events(living, "k", 3)
        publish_here(runs.runs, "run-1")
        assert runs.runs.step("deliver", WRITER).code == 0
        assert runs.runs.command("journal", "pointer", name, "k").out == "3\n"
        old_id = runs.runs.control.bindings_head().topic_ids[runs.topic]

        make_again(known, runs.topic, 1)
        with Journal(runs.topic, keyspace="not_there_yet", **ends) as others:
            given_events(others, "other", 20)  # far beyond the old pointer

        for verb, *further in (("read",), ("pointer",), ("append", "--text", "x")):
            ended = runs.runs.command("journal", verb, name, "k", *further)
            assert (ended.code, old_id in ended.err) == (1, True), ended
            assert f"tidemark log accept {name}" in ended.err
        with Journal(runs.topic, keyspace=runs.keyspace, **ends) as fresh:
            for journal in (living, fresh):
                with pytest.raises(TopicRecreated) as raised:
                    list(journal.read("k"))
                assert (raised.value.known, raised.value.pipeline) == (old_id, name)
                with pytest.raises(TopicRecreated):
                    journal.append("k", [Event.text(1, "again")])


def test_when_the_loss_is_accepted_only_tables_of_the_old_topic_are_refused(runs: JournalRuns) -> None:
    """Item 2: the id that was bound last is the new topic's by then."""
    known, name = runs.runs.connections, runs.runs.name
    ends: dict[str, Any] = {"kafka": known.kafka, "cassandra": known.control}
    with Journal(runs.topic, keyspace=runs.keyspace, **ends) as journal:
        given_events(journal, "k", 3)
    publish_here(runs.runs, "run-1")
    assert runs.runs.step("deliver", WRITER).code == 0
    make_again(known, runs.topic, 1)
    with Journal(runs.topic, keyspace="not_there_yet", **ends) as others:
        given_events(others, "other", 5)
    assert "made again" in runs.runs.step("bind", "run-2").err
    assert runs.runs.accept("known").code == 0

    for run_id in (None, "run-3"):  # before it is bound, and when it is
        if run_id:
            publish_here(runs.runs, run_id)
        ended = runs.runs.command("journal", "read", name, "k")
        assert (ended.code, "keyspace of its own" in ended.err) == (1, True), ended
    with Journal(runs.topic, keyspace="not_there_yet", **ends) as others:
        assert others.pointer("other") == 5
