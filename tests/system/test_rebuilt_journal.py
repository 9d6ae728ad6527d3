"""A journal of 20,000 random actions is rebuilt and handed over while a client reads it in a loop."""

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.services.journal_histories import History
from tests.support.services.journal_runs import (
    WRITER,
    differences,
    given_journal,
    given_topic,
    read_visible,
    send,
)
from tests.support.services.log_runs import spark_environ
from tests.support.waiting import wait_until

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.cli.connections import look_up
from tidemark.client.events import Event
from tidemark.client.journal import Journal
from tidemark.client.tables import active_tables
from tidemark.connections import Connections
from tidemark.settings import ROOT

pytestmark = pytest.mark.system

ACTIONS, LATER = 18_000, 1_000
SEED = 9
KEYS = [f"read-{number}" for number in range(8)]
EXECUTE = ("--execute", "--reason", "a test", "--by", "ann")


class ReadingClient:
    """Appends to entities of its own and reads them, again and again; notes every read that is not exactly
    what was appended before it."""

    def __init__(self, journal: Journal) -> None:
        self.journal, self.reads, self.wrong = journal, 0, list[str]()
        self.appended: dict[str, int] = {}
        self._is_over = threading.Event()

    def go_on(self) -> None:
        """Until the end of the test, or until something is wrong."""
        for number, key in ((number, key) for number in itertools.count(1) for key in KEYS):
            if self._is_over.is_set() or self.wrong:
                return
            try:
                self.journal.append(key, [Event.json(number, {"n": number})])
                self.appended[key] = number
                found = [event.seq_nr for event in self.journal.read(key)]
            except Exception as error:
                self.wrong.append(f"{key}: {type(error).__name__}: {error}")
                return
            if found != list(range(1, number + 1)):
                self.wrong.append(f"{key}: {found} instead of 1 to {number}")
            self.reads += 1

    def wait_for_reads(self, count: int) -> None:
        """So many reads more."""
        until = self.reads + count
        wait_until(lambda: self.reads >= until or self.wrong, what=f"{count} reads")

    @contextmanager
    def at_work(self) -> Iterator[None]:
        thread = threading.Thread(target=self.go_on, name="reading client")
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()


def run(*arguments: str) -> str:
    """A command in a process of its own: in this one it would close the client's sessions at its end."""
    command = [str(Path(sys.executable).parent / "tidemark"), "renditions", *arguments]
    environ = {**os.environ, **spark_environ()}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def test_no_read_fails_or_goes_back_while_a_journal_is_rebuilt_and_handed_over(
    services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: a journal of random actions, and a client that reads it and asks often for the active tables.
    monkeypatch.setattr(active_tables, "ASKED_AGAIN_AFTER", 0.5)
    topic, history = f"rebuilt-{uuid4().hex[:8]}", History(SEED)
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    with (
        given_topic(connections, topic),
        given_journal(tmp_path, connections, topic, f"{topic}-r", monkeypatch) as journal,
    ):
        place, name = f"{journal.keyspace}_r2", journal.runs.name
        send(connections, topic, history.go_on(ACTIONS))
        journal.replicate("run-1", with_spark=False)
        try:
            with (
                Journal.of_pipeline(name, look_up=look_up, origin="reader") as opened,
                (client := ReadingClient(opened)).at_work(),
            ):
                client.wait_for_reads(len(KEYS))

                # When: the next rendition is built from the log, while the history goes on.
                run("build", name, WRITER, *EXECUTE)
                send(connections, topic, history.go_on(LATER))
                journal.replicate("run-2", with_spark=False)
                run("build", name, WRITER, *EXECUTE)
                report = json.loads(run("verify", name, WRITER, "--mode", "exact", "--json"))
                run("handover", name, WRITER, *EXECUTE)
                send(connections, topic, history.go_on(LATER))
                journal.replicate("run-3", with_spark=False)
                client.wait_for_reads(2 * len(KEYS))
            journal.replicate("run-4", with_spark=False)

            # Then: both are the same, no read failed or went back, and readers use the second one.
            assert (report["clean"], report["differences"]) == (True, 0)
            assert client.wrong == []
            assert OpenPipeline(journal.runs.pipeline, connections).journal().declared.keyspace == place
            run("build", name, WRITER, "1", *EXECUTE)
            after = read_visible(journal.session, place, topic)
            assert differences(journal.visible, after) == {}
            assert {key: after[key]["seq_nr"] for key in KEYS} == client.appended
        finally:
            journal.session.execute(f"DROP KEYSPACE IF EXISTS {place}", timeout=60)
