"""The long campaign of compaction: capture, delivery, resume, compaction and sweep at once, on one log.

    python tests/soak/compaction.py [--minutes 10] [--seed 1]

Needs Kafka and Cassandra (``make up``). A random history is sent and delivered to a journal and to files,
writers are stopped and resumed, and all the time the log is compacted and swept. At the end nothing may be
lost, doubled or out of order: the journal is as the history left it, the files hold every id once and in
order, and a journal rebuilt from what is left of the log is the same. Ends with 1 otherwise.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # it is a script: nothing else leads to the tests

from tests.soak.journal_history import connect as connect_services
from tests.soak.journal_history import say
from tests.support.services.journal_histories import History
from tests.support.services.journal_runs import (
    differences,
    given_topic,
    read_pointers,
    read_visible,
    send,
    without_dates,
)
from tests.support.services.log_runs import LogRuns, deliver_here, publish_here

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.cassandra.session import connect, disconnect_all
from tidemark.compaction.compact import Compacted, Compaction
from tidemark.compaction.engine import InProcess
from tidemark.compaction.errors import PlanOutdated
from tidemark.connections import Connections
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.delivery.state.lease import LeaseHeld
from tidemark.log.state.lease import LogHeld, LogLost
from tidemark.log.sweep import sweep_log

SEGMENT_SIZE = 10
ACTIONS_A_RUN = 500
SECOND = 1_000_000
GRACE = 60 * SECOND
WRITERS = ("cassandra", "archive")
PIPELINE = """
name: {name}
source:
  kafka: {{topics: ["{name}"]}}
schedule: null
log:
  path: "{folder}/log"
  segment_bytes: 50KB
  compaction: {{policy: journal, min_lag: 2s}}
writers:
  - {{name: cassandra, kind: journal, keyspace: {keyspace}, segment_size: {size}}}
  - {{name: archive, kind: files, path: "{folder}/archive", format: parquet}}
{further}
"""
REBUILT = "  - {{name: rebuilt, kind: journal, keyspace: {keyspace}_rebuilt, segment_size: {size}}}"

Repeat = Callable[[], str]


class Campaign:
    """One log and everything that happens to it."""

    def __init__(self, folder: Path, connections: Connections, seed: int) -> None:
        self.folder, self.connections = folder, connections
        self.name = f"soak_{uuid4().hex[:8]}"
        self.history, self.began = History(seed), time.monotonic()
        self.runs = LogRuns(self.name, folder, connections)
        self.number = self.dropped = self.compactions = 0
        self.failures: list[str] = []

    def declare(self, further: str = "") -> None:
        """The pipeline's file."""
        (self.folder / "pipelines").mkdir(exist_ok=True)
        keys = {"name": self.name, "folder": self.folder, "keyspace": self.name, "size": SEGMENT_SIZE}
        text = PIPELINE.format(**keys, further=further.format(**keys))
        (self.folder / "pipelines" / f"{self.name}.yaml").write_text(text)

    @property
    def opened(self) -> OpenPipeline:
        return OpenPipeline(self.runs.pipeline, self.connections)

    def replicate(self) -> str:
        """Send, capture, publish and deliver to every open writer."""
        send(self.connections, self.name, self.history.go_on(ACTIONS_A_RUN))
        self.number += 1
        binding = publish_here(self.runs, f"run-{self.number}")
        for writer in WRITERS:
            try:
                deliver_here(self.opened, writer)
            except (LeaseHeld, LogHeld):  # it is being resumed, or is new while the log is compacted
                continue
        return f"published up to id {binding.end}"

    def compact(self) -> str:
        """One compaction and one sweep."""
        opened = self.opened
        try:
            done = Compaction.open(opened.pipeline, opened.consensus, InProcess()).run("soak")
            swept = sweep_log(self.runs.control, self.runs.folder, "soak", GRACE)
        except (LogHeld, LogLost, PlanOutdated) as refused:
            return f"compaction refused: {refused}"
        if not isinstance(done, Compacted):
            return "nothing to compact"
        self.compactions += 1
        self.dropped += done.plan.dropped
        return f"{done.plan.dropped} messages dropped, {len(swept.removed)} files swept"

    def stop_and_resume(self) -> str:
        """Stop a writer by hand, and let it go on."""
        writer = WRITERS[self.number % len(WRITERS)]
        opened = self.opened
        if opened.positions.load(writer) is None:
            return "no process to stop yet"
        try:
            plan = opened.plan_stop(writer)
            plan.execute(AuditEntry(plan.action, "soak", "to see it resume", time.time_ns() // 1000))
        except LeaseHeld:
            return f"{writer} is busy"
        resumed = self.opened.resume(writer, "soak resume", lambda _: None)
        return f"{writer} stopped and resumed at {resumed.position}"

    def repeat(self, what: Repeat, pause: float, over: threading.Event) -> threading.Thread:
        """Do something again and again."""

        def work() -> None:
            while not over.wait(pause):
                try:
                    say(what(), self.began)
                except Exception as error:
                    self.failures.append(f"{what.__name__}: {type(error).__name__}: {error}")
                    over.set()

        thread = threading.Thread(target=work, name=what.__name__)
        thread.start()
        return thread

    def differing(self) -> Iterator[str]:
        """Everything that is not as it should be at the end."""
        for writer in WRITERS:
            if writer in self.opened.stopped():
                self.opened.resume(writer, "soak end", lambda _: None)
            deliver_here(self.opened, writer)
        self.declare(REBUILT)
        deliver_here(self.opened, "rebuilt")
        session = connect(self.connections.control)
        expected = self.history.expected(SEGMENT_SIZE)
        for keyspace in (self.name, f"{self.name}_rebuilt"):
            found = without_dates(read_visible(session, keyspace, self.name))
            for key, (is_, should) in list(differences(found, expected).items())[:5]:
                yield f"{keyspace}: {key!r} is {is_}, not {should}"
            if (pointers := read_pointers(session, keyspace, self.name)) != self.history.pointers:
                yield f"{keyspace}: pointers are {pointers}, not {self.history.pointers}"
        ids = [i for path in sorted((self.folder / "archive").rglob("*.parquet")) for i in _ids(path)]
        end = self.runs.control.log_head().end
        if ids != list(range(end + 1)):
            yield f"the files hold {len(ids)} ids of {end + 1}, {len(set(ids))} of them different"
        if not self.dropped:
            yield "compaction has dropped nothing at all"


def _ids(path: Path) -> list[int]:
    found: list[int] = pq.read_table(path, columns=["id"])["id"].to_pylist()
    return found


@contextmanager
def campaign(connections: Connections, seed: int) -> Iterator[Campaign]:
    """A campaign whose topic and keyspaces are gone afterwards."""
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        one = Campaign(Path(folder), connections, seed)
        one.declare()
        patch.setenv("TIDEMARK_PIPELINES", f"{folder}/pipelines")
        with given_topic(connections, one.name):
            try:
                yield one
            finally:
                for keyspace in (one.name, f"{one.name}_rebuilt"):
                    session: Any = connect(connections.control)
                    session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=60)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="compaction", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10, help="how long everything goes on")
    parser.add_argument("--seed", type=int, default=1, help="what the history is made from")
    given = parser.parse_args(argv)
    try:
        with campaign(connect_services(), given.seed) as one:
            over = threading.Event()
            threads = [
                one.repeat(one.replicate, 0.1, over),
                one.repeat(one.compact, 2.0, over),
                one.repeat(one.stop_and_resume, 5.0, over),
            ]
            over.wait(60 * given.minutes)
            over.set()
            for thread in threads:
                thread.join()
            wrong = one.failures or list(one.differing())
            say(
                f"{one.number} runs, {one.compactions} compactions, {one.dropped} messages dropped", one.began
            )
            print("\n".join(wrong) or "nothing lost, doubled or out of order")
    finally:
        disconnect_all()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
