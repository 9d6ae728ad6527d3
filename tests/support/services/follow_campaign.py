"""Everything at once on a pipeline that is followed: replicate, compaction, purges, a resume, and deaths.

At the end a reader must see what one run over the same records leaves, and files must hold every id once.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from kafka.errors import KafkaError
from tests.support.services.expiry_runs import ExpiryRuns, day, expired
from tests.support.services.follow_runs import FollowProcess, FollowRuns, given_followed, publish_beside
from tests.support.services.journal_histories import History
from tests.support.services.journal_runs import (
    WRITER,
    JournalRuns,
    declare_journal,
    differences,
    send,
    without_dates,
)
from tests.support.services.log_runs import deliver_here
from tests.support.waiting import wait_until

from tidemark.cli.demo.main import send_actions
from tidemark.clock import wall_clock
from tidemark.compaction.compact import Compacted, Compaction
from tidemark.compaction.engine import InProcess
from tidemark.compaction.errors import PlanOutdated
from tidemark.connections import Connections
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.delivery.operator.action_plan import ChangedMeanwhile
from tidemark.delivery.state.lease import LeaseHeld
from tidemark.errors import TidemarkError
from tidemark.log.source import WatchedSource
from tidemark.log.state.lease import LogHeld, LogLost
from tidemark.log.sweep import sweep_log
from tidemark.pipeline.model import source_topics

ARCHIVE = """  - {{name: archive, kind: files, path: "{folder}/archive/{name}", format: parquet}}
expiry: {{schedule: null, timezone: UTC}}
"""
GRACE = 60_000_000
PATIENCE = 180.0


class FollowCampaign:
    """One pipeline, the process that follows it, and everything that happens to it."""

    def __init__(self, follow: FollowRuns, once: JournalRuns, seed: int) -> None:
        self.follow, self.once, self.history = follow, once, History(seed)
        self.began, self.counts = time.monotonic(), dict[str, int]()
        self.failures: list[str] = []
        self.shown: list[str] = []
        self._over, self._is_kept = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self._sending = threading.Lock()
        self._number = 0

    @property
    def name(self) -> str:
        return self.follow.runs.name

    @property
    def connections(self) -> Connections:
        return self.follow.runs.connections

    # What happens again and again

    def append(self, actions: int = 100) -> None:
        """Records of the history, in their order."""
        with self._sending:
            send(self.connections, self.name, self.history.go_on(actions))

    def replicate(self) -> None:
        """A run of replicate, without Spark."""
        self._number += 1
        publish_beside(self.follow.runs, f"replicate-{self._number}")
        for writer in (WRITER, "archive"):
            with suppress(LeaseHeld, LogHeld):
                deliver_here(self.follow.opened, writer)

    def compact(self) -> None:
        """One compaction and one sweep."""
        opened = self.follow.opened
        with suppress(LogHeld, LogLost, PlanOutdated):
            done = Compaction.open(opened.pipeline, opened.consensus, InProcess()).run("campaign")
            sweep_log(self.follow.runs.control, self.follow.runs.folder, "campaign", GRACE)
            if isinstance(done, Compacted):
                self._count("dropped", done.plan.dropped)

    def stop_and_resume(self) -> None:
        """Stop the writer by hand, and let it go on."""
        opened = self.follow.opened
        if opened.positions.load(WRITER) is None:
            return
        with suppress(LeaseHeld, ChangedMeanwhile), opened.between_rounds(WRITER) as quiet:
            plan = quiet.plan_stop(WRITER)
            plan.execute(AuditEntry(plan.action, "campaign", "to see it resume", wall_clock()))
        self.follow.opened.resume(WRITER, "campaign resume", lambda _: None)

    def purge(self) -> None:
        """Let entities expire, and purge them."""
        self._number += 1
        names = [f"expired-{self._number}-{number}" for number in range(5)]
        with self._sending:
            send_actions(self.connections.kafka, self.name, [expired(one) for one in names])
        runs = ExpiryRuns(self.name, self.connections)
        run = runs.plan(day(1), name=f"purge-{self._number}")
        with self._sending:
            run.purge()

    # How it goes on

    def keep_following(self) -> None:
        """Start the next run whenever one has ended, as Airflow does."""
        number = 0
        while not self._is_kept.is_set():
            number += 1
            attempt = self.follow.start(f"run-{number}")
            while attempt.process.poll() is None and not self._is_kept.wait(0.1):
                pass
            if attempt.process.poll() not in (None, 0, -signal.SIGKILL):
                self._count("failed attempts", 1)
                self.shown.append(attempt.output[-1_500:])

    def repeat(self, what: Callable[[], None], pause: float) -> None:
        """Do something again and again, until the end."""

        def work() -> None:
            while not self._over.wait(pause):
                try:
                    what()
                    self._count(what.__name__, 1)
                except (TidemarkError, KafkaError) as error:
                    # A service may be dead at this moment: only the state at the end counts.
                    self._count(f"{what.__name__} refused: {type(error).__name__}", 1)
                except Exception as error:
                    self.failures.append(f"{what.__name__}: {type(error).__name__}: {error}")
                    self._over.set()

        self._spawn(work, what.__name__)

    def start(self) -> None:
        """Begin with everything that belongs to the usual life of a pipeline."""
        self._spawn(self.keep_following, "keep following")
        for what, pause in (
            (self.append, 0.2),
            (self.replicate, 5.0),
            (self.compact, 7.0),
            (self.stop_and_resume, 11.0),
            (self.purge, 13.0),
        ):
            self.repeat(what, pause)

    def wait(self, seconds: float) -> None:
        """Let it go on; returns early where something has failed."""
        self._over.wait(seconds)

    def kill_follow(self) -> None:
        """``kill -9`` of the process that follows."""
        with suppress(ProcessLookupError, IndexError):
            os.kill(self.newest.process.pid, signal.SIGKILL)

    @property
    def newest(self) -> FollowProcess:
        """The attempt that was started last."""
        return self.follow.processes[-1]

    def finish(self, is_complete: Callable[[], bool] = lambda: True) -> None:
        """Stop everything but the follow, let it come to the end, then stop it too.

        ``is_complete`` is what else it has to have done by then.
        """
        self._over.set()
        for thread in self._threads:
            if thread.name != "keep following":
                thread.join()
        try:
            if WRITER in self.follow.opened.stopped():
                self.follow.opened.resume(WRITER, "campaign resume", lambda _: None)
            wait_until(self._is_done, PATIENCE, "the follow to deliver everything")
            wait_until(is_complete, PATIENCE, "the follow to do the rest")
        finally:
            self._is_kept.set()
            for thread in self._threads:
                thread.join()
        if self.newest.process.poll() is None:
            self.newest.stop()

    def _is_done(self) -> bool:
        head, opened = self.follow.runs.control.log_head(), self.follow.opened
        bindings = self.follow.runs.control.bindings_head()
        reached = bindings.reached
        with closing(WatchedSource(source_topics(opened.pipeline), self.connections.kafka)) as kafka:
            is_bound = bool(reached) and kafka.ends(reached) == reached
        states = [opened.positions.load(name) for name in (WRITER, "archive")]
        if not is_bound or bindings.newest != head.t:
            return False
        return all(state is not None and state.position == head.end for state in states)

    def differing(self) -> Iterator[str]:
        """Everything that is not as one run over the same records leaves it."""
        self.once.replicate("once", with_spark=False)
        journal = self.follow.journal
        found = differences(without_dates(journal.visible), without_dates(self.once.visible))
        for key, (is_, should) in list(found.items())[:5]:
            yield f"{key!r} is {is_}, not {should}"
        if journal.pointers != self.once.pointers:
            yield f"pointers are {journal.pointers}, not {self.once.pointers}"
        end = self.follow.runs.control.log_head().end
        folder = self.follow.folder / "archive" / self.name
        ids = [i for path in sorted(folder.rglob("*.parquet")) for i in _ids(path)]
        if ids != list(range(end + 1)):
            yield f"the files hold {len(ids)} ids of {end + 1}, {len(set(ids))} of them different"

    def _spawn(self, work: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=work, name=name)
        self._threads.append(thread)
        thread.start()

    def _count(self, what: str, number: int) -> None:
        self.counts[what] = self.counts.get(what, 0) + number


def _ids(path: Path) -> list[int]:
    found: list[int] = pq.read_table(path, columns=["id"])["id"].to_pylist()
    return found


@contextmanager
def given_campaign(
    root: Path, connections: Connections, patch: pytest.MonkeyPatch, seed: int = 1
) -> Iterator[FollowCampaign]:
    """A campaign whose topic and keyspaces are gone afterwards."""
    name = f"follow-{uuid4().hex[:8]}"
    with given_followed(root, connections, name, patch, ARCHIVE) as follow:
        other = f"{name}-once"
        once = declare_journal(root, connections, name, other, other.replace("-", "_"), patch)
        session: Any = once.session
        try:
            yield FollowCampaign(follow, once, seed)
        finally:
            session.execute(f"DROP KEYSPACE IF EXISTS {once.keyspace}", timeout=60)
