"""After an error that needs a person the next run waits, longer each time, or until the file has changed."""

from contextlib import suppress

import pytest
from tests.support.memory_writers import Stream
from tests.support.opened_pipeline import given_opened
from tests.support.pipeline_world import PipelineWorld

from tidemark.app.follow.errors import WritersLeftOut
from tidemark.app.follow.failures import noting_failures
from tidemark.app.follow.readiness import why_not_ready
from tidemark.clock import SECOND
from tidemark.log.model.gate import LogGate, LogGateCause
from tidemark.log.source import KafkaUnreachable, NoSuchTopic
from tidemark.log.state.followed import forget_followed, read_follow_failure

pytestmark = pytest.mark.unit

MISSING = NoSuchTopic("orders", "orders")
GATE = LogGate(LogGateCause.LOST, "records are lost: orders/0", None, None, (), None, 5_000)


@pytest.fixture
def house(tmp_path) -> PipelineWorld:
    return PipelineWorld(tmp_path)


@pytest.fixture
def opened(house, monkeypatch):
    return given_opened(house, monkeypatch, Stream())


def fail(opened, error: Exception = MISSING, at: float = 0) -> None:
    """A run that ends with an error so many seconds after the epoch."""
    with suppress(type(error)), noting_failures(opened, lambda: round(at * SECOND)):
        raise error


def waits(opened, at: float) -> str | None:
    return why_not_ready(opened, "run-2", lambda: round(at * SECOND))


def test_the_next_run_waits_a_minute_and_says_why(opened):
    fail(opened)
    said = waits(opened, 59)
    assert said.startswith(
        "orders: the last run ended with an error that needs a person: orders: Kafka has no"
    )
    assert "The next run begins at 1970-01-01 00:01:00 UTC" in said
    assert waits(opened, 60) is None


def test_the_error_itself_is_raised(opened):
    with pytest.raises(NoSuchTopic), noting_failures(opened):
        raise MISSING


def test_failures_in_a_row_make_the_wait_longer_up_to_a_limit(opened, house):
    lengths, now = [], 0.0
    for _ in range(5):
        fail(opened, at=now)
        until = read_follow_failure(house.consensus, "orders").until / SECOND
        lengths.append(until - now)
        now = until + 5
    assert lengths == [60, 120, 240, 300, 300]


def test_a_failure_long_after_another_is_the_first_one_again(opened, house):
    fail(opened)
    fail(opened, at=3_600)
    assert read_follow_failure(house.consensus, "orders").count == 1


def test_a_changed_file_is_tried_at_once(opened, house, monkeypatch):
    fail(opened)
    changed = given_opened(house, monkeypatch, Stream(), limits={"max_records_per_run": 7})
    assert waits(changed, 1) is None


def test_an_error_that_passes_by_itself_is_left_to_retries(opened):
    fail(opened, KafkaUnreachable("orders", "broker:9092", "gone"))
    assert waits(opened, 1) is None


def test_a_run_that_left_one_writer_out_does_not_make_the_others_wait(opened):
    fail(opened, WritersLeftOut("orders", "orders/archive: its topic is gone."))
    assert waits(opened, 1) is None


def test_what_closed_the_logs_gate_is_over_when_the_gate_opens(opened, house):
    house.control.close_gate(GATE)
    fail(opened)
    house.control.open_gate(house.control.log_gate())
    assert waits(opened, 1) is None


def test_a_control_plane_that_is_gone_does_not_hide_the_error(opened, monkeypatch):
    monkeypatch.setattr(type(opened), "consensus", property(lambda self: 1 / 0))
    with pytest.raises(NoSuchTopic), noting_failures(opened):
        raise MISSING


def test_a_pipeline_that_is_forgotten_leaves_no_failure(opened, house):
    fail(opened)
    forget_followed(house.consensus, "orders")
    assert read_follow_failure(house.consensus, "orders") is None
