"""Follow on real Kafka and Cassandra: rounds, deaths in the middle of them, and what goes on beside them."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.connect_server import running_server
from tests.support.services.follow_campaign import given_campaign
from tests.support.services.follow_runs import FollowRuns, given_followed, publish_beside
from tests.support.services.journal_histories import History
from tests.support.services.journal_runs import WRITER, make_again, send
from tests.support.waiting import wait_until

from tidemark.app.open_pipeline import resumes_by_itself
from tidemark.clock import wall_clock
from tidemark.compaction.compact import Compaction
from tidemark.compaction.engine import InProcess
from tidemark.connections import Connections
from tidemark.faults import FaultPoint
from tidemark.log.bindings.door import Bindings
from tidemark.log.state.followed import TERM

pytestmark = pytest.mark.system

POINTS = (
    FaultPoint.BIND_DECIDED,
    FaultPoint.BIND_COMMITTED,
    FaultPoint.CAPTURE_FILE_STAGED,
    FaultPoint.CAPTURE_FILE_NAMED,
    FaultPoint.CAPTURE_FILES_WRITTEN,
    FaultPoint.CAPTURE_RECORDED,
    FaultPoint.AUDIT_RECORDED,
    FaultPoint.PUBLISH_MANIFEST_WRITTEN,
    FaultPoint.PUBLISH_COMMITTED,
    FaultPoint.DELIVER_PARTS_WRITTEN,
    FaultPoint.DELIVER_FINISHED,
    FaultPoint.DELIVER_SETTLED,
    FaultPoint.DELIVER_COMMITTED,
)


@pytest.fixture
def history() -> History:
    return History(11)


@pytest.fixture
def follow(services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FollowRuns]:
    """A pipeline of the test's own."""
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    with given_followed(tmp_path, connections, f"follow-{uuid4().hex[:8]}", monkeypatch) as one:
        yield one


def append(follow: FollowRuns, history: History, actions: int) -> None:
    send(follow.runs.connections, follow.runs.name, history.go_on(actions))


def test_rounds_deliver_idle_ones_bind_nothing_and_sigterm_ends_the_run_cleanly(
    follow: FollowRuns, history: History
) -> None:
    append(follow, history, 200)
    attempt = follow.following()
    follow.wait_for(history.pointers)
    append(follow, history, 200)
    follow.wait_for(history.pointers)

    bindings = list(Bindings(follow.runs.control).every())
    upper = follow.runs.control.bindings_head().upper
    wait_until(lambda: follow.runs.control.bindings_head().upper > upper, 60, "upper to advance")
    assert list(Bindings(follow.runs.control).every()) == bindings

    summary = attempt.stop()
    assert (summary["ended"], summary["records"]) == ("stopped", 400)
    assert follow.journal.difference_to(history) == {}
    state = follow.opened.positions.load(WRITER)
    assert state is not None
    assert (state.position, state.lease) == (bindings[-1].end, None)
    assert follow.followed is not None
    assert not follow.followed.is_current(wall_clock())


def test_after_a_death_at_any_point_of_a_round_the_next_attempt_goes_on(
    follow: FollowRuns, history: History
) -> None:
    for point in POINTS:
        append(follow, history, 30)
        assert follow.start(fault=point).ended() == -9, point
    attempt = follow.following()
    follow.wait_for(history.pointers)
    attempt.stop()
    assert follow.journal.difference_to(history) == {}


def test_a_killed_follow_counts_as_none_within_its_term(follow: FollowRuns, history: History) -> None:
    append(follow, history, 30)
    follow.following().kill()
    killed = follow.followed
    assert killed is not None
    assert wall_clock() < killed.deadline <= wall_clock() + TERM


def test_a_gate_that_closes_ends_the_run_and_a_resume_is_to_be_started(
    follow: FollowRuns, history: History
) -> None:
    append(follow, history, 30)
    attempt = follow.following()
    follow.wait_for(history.pointers)
    send(follow.runs.connections, follow.runs.name, [history.unreadable(b"entity-7", 0)])
    assert attempt.ended() == 0, attempt.output[-3_000:]
    assert (attempt.summary["ended"], attempt.summary["closed"]) == ("gate closed", [WRITER])
    gate = follow.opened.stopped()[WRITER]
    assert resumes_by_itself(gate)

    # The next run leaves the stopped writer out, and goes on.
    again = follow.following("run-2")
    append(follow, history, 30)
    end = follow.runs.control.log_head().end
    wait_until(lambda: follow.runs.control.log_head().end > end, 60, "a binding without the stopped writer")
    assert again.stop()["ended"] == "stopped"


def test_commands_of_an_operator_get_their_turn(follow: FollowRuns, history: History) -> None:
    append(follow, history, 300)
    attempt = follow.following()
    follow.wait_for(history.pointers)
    name = follow.runs.name

    def command(*arguments: str) -> float:
        """Seconds that a command takes while records arrive."""
        append(follow, history, 50)
        began = time.monotonic()
        ended = follow.runs.command(*arguments, "--execute", "--reason", "to see it")
        assert ended.code == 0, ended
        return time.monotonic() - began

    assert command("offsets", "rewind", name, WRITER, "100") < 20
    assert command("gate", "stop", name, WRITER) < 20
    assert command("gate", "open", name, WRITER) < 20
    compaction = Compaction.open(follow.runs.pipeline, follow.opened.consensus, InProcess())
    compaction.run("orders.compact_log run-1")
    append(follow, history, 50)
    follow.wait_for(history.pointers)
    attempt.stop()
    assert follow.journal.difference_to(history) == {}


def test_a_replicate_beside_it_is_green(follow: FollowRuns, history: History) -> None:
    append(follow, history, 100)
    attempt = follow.following()
    append(follow, history, 100)
    ended = follow.runs.deliver(f"{follow.runs.name}.replicate run-1")
    assert (ended.code, ended.summary["writers"][WRITER]["failure"]) == (0, None), ended
    follow.wait_for(history.pointers)
    attempt.stop()
    assert follow.journal.difference_to(history) == {}


def test_a_binding_of_another_run_is_finished_by_a_round(follow: FollowRuns, history: History) -> None:
    append(follow, history, 100)
    attempt = follow.following()
    for number in range(5):
        append(follow, history, 40)
        publish_beside(follow.runs, f"replicate-{number}")
    follow.wait_for(history.pointers)
    attempt.stop()
    assert follow.journal.difference_to(history) == {}


def test_a_topic_that_is_made_again_closes_the_logs_gate(follow: FollowRuns, history: History) -> None:
    append(follow, history, 50)
    attempt = follow.following()
    follow.wait_for(history.pointers)
    make_again(follow.runs.connections, follow.runs.name)
    assert attempt.ended() == 1, attempt.output[-3_000:]
    assert attempt.summary["needs_person"]
    # A round that looked while there was no topic has said so, and the next one finds the new topic.
    if attempt.summary["kind"] == "NoSuchTopic":
        assert follow.start().ended() == 1
    assert follow.runs.control.log_gate() is not None
    state = follow.opened.positions.load(WRITER)
    assert state is not None
    assert state.gate is None


def test_beside_everything_else_it_leaves_what_one_run_over_the_same_records_leaves(
    services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A minute; the hour with deaths of services is ``tests/soak/follow.py``."""
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    with given_campaign(tmp_path, connections, monkeypatch) as campaign:
        campaign.start()
        campaign.wait(30)
        campaign.kill_follow()
        campaign.wait(30)
        campaign.finish()
        assert campaign.failures == []
        assert list(campaign.differing()) == []


def test_an_engine_that_dies_in_a_round_is_one_clear_error_and_the_next_attempt_goes_on(
    services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, history: History
) -> None:
    with running_server(tmp_path / "engine") as server:
        connections = Connections(
            kafka=services.kafka,
            cassandra={"cassandra_default": services.cassandra},
            spark=server.connection,
        )
        name = f"follow-{uuid4().hex[:8]}"
        with given_followed(tmp_path, connections, name, monkeypatch) as follow:
            in_process = follow.runs.pipeline.limits.max_records_in_process
            append(follow, history, 2 * in_process)  # Spark has to capture them
            attempt = follow.start()
            staging = Path(follow.runs.pipeline.log.path, "staging")
            wait_until(lambda: any(staging.rglob("_temporary")), 180, "Spark to capture")
            server.kill()
            assert attempt.ended(240) == 1, attempt.output[-3_000:]
            assert attempt.summary["kind"].startswith("Engine"), attempt.summary
            server.start()
            again = follow.following()
            follow.wait_for(history.pointers, 240)
            again.stop()
            assert follow.journal.difference_to(history) == {}
