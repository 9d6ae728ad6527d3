"""The tasks ``bind`` and ``publish``: which tasks run next, and what is handed to them."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.airflow_context import given_context

from tidemark.app.replicate import RunPlan
from tidemark.errors import TidemarkError
from tidemark.pipeline.model import OnFailure

pytestmark = pytest.mark.unit

GATES = ["gate_stream", "gate_other"]


class Lost(TidemarkError):
    needs_person = True


@pytest.fixture
def replicate():
    from tidemark_airflow.tasks import replicate

    return replicate


@pytest.fixture
def bind(replicate, monkeypatch):
    """Runs ``bind`` over what ``begin_run`` finds; the next tasks and what was pushed."""
    from tidemark.app import reconcile_idle

    def run(
        found: Any,
        run_type: str = "scheduled",
        on_failure: OnFailure = OnFailure.STOP_WRITER,
        different: tuple[str, ...] = (),
        **params: Any,
    ) -> tuple[list[str], dict[str, Any], list[Any]]:
        begun: list[Any] = []

        def begin_run(run_id: str, *, retry: bool) -> Any:
            begun.append((run_id, retry))
            if isinstance(found, Exception):
                raise found
            return found

        writers = [SimpleNamespace(name="stream"), SimpleNamespace(name="other")]
        opened = SimpleNamespace(
            pipeline=SimpleNamespace(name="orders", writers=writers, on_failure=on_failure),
            begin_run=begin_run,
            refuse_replicator=lambda run_id: begun.append("refuse_replicator"),
            differences=lambda: ["orders/stream: the file differs"],
        )
        monkeypatch.setattr(replicate, "open_pipeline", lambda name, with_engine: opened)
        monkeypatch.setattr(reconcile_idle, "reconcile_idle", lambda *given: list(different))
        context = given_context(run_type, **{"from_t": None, "to_t": None, **params})
        return replicate.bind.function("orders", **context), context["ti"].pushed, begun

    return run


def test_new_messages_are_captured(bind, capsys):
    tasks, pushed, begun = bind(RunPlan(7, 12, 0))
    assert tasks == ["capture", *GATES, "find_stopped", "check_gates"]
    assert (pushed["t"], begun) == (7, [("run-1", False)])
    assert "the file differs" in capsys.readouterr().out


def test_a_run_by_hand_tries_again_at_a_closed_gate(bind):
    assert bind(RunPlan(7, 12, 0), "manual")[2] == [("run-1", True)]


def test_a_pipeline_that_stops_as_a_whole_has_its_gates_before_bind(bind):
    tasks = bind(RunPlan(7, 12, 0), on_failure=OnFailure.STOP_PIPELINE)[0]
    assert tasks == ["capture", "find_stopped", "check_gates"]


def test_a_writer_that_is_behind_is_delivered_to_without_a_capture(bind):
    assert bind(RunPlan(None, 0, 5))[0] == ["deliver", *GATES, "find_stopped", "check_gates"]


def test_nothing_new_ends_the_run(bind):
    assert bind(RunPlan(None, 0, 0))[0] == []


def test_a_stopped_writer_stays_visible_when_nothing_is_new(bind):
    assert bind(RunPlan(None, 0, 0, stopped=True))[0] == ["find_stopped", "check_gates"]


def test_a_difference_fails_an_idle_run(bind):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="a file is missing"):
        bind(RunPlan(None, 0, 0), different=("orders/stream: a file is missing.",))


def test_lost_records_fail_without_retries(bind):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="Kafka has lost"):
        bind(Lost("Kafka has lost records"))


def test_a_backfill_delivers_its_interval_again_and_binds_nothing(bind):
    tasks, pushed, begun = bind(None, "backfill")
    assert (tasks, begun) == (["deliver", "check_gates"], ["refuse_replicator"])
    day = 24 * 3600 * 1_000_000
    assert int(pushed["to_t"]) - int(pushed["from_t"]) == day - 1


# Times


@pytest.mark.parametrize(
    ("given", "micros"),
    [
        (None, 5),
        (17, 17),
        ("17", 17),
        ("2026-11-01", 1_793_491_200_000_000),
        ("2026-11-01T01:00+01:00", 1_793_491_200_000_000),
    ],
)
def test_a_time_may_be_micros_or_a_date(replicate, given, micros):
    assert replicate.binding_time(given, 5) == micros


def test_what_is_no_time_is_refused(replicate):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match=r"`2026-11-99` is no time.*Nothing was delivered"):
        replicate.binding_time("2026-11-99", 0)


def test_without_parameters_only_a_backfill_has_an_interval(replicate):
    params = {"from_t": None, "to_t": None}
    assert replicate.again_interval(given_context("scheduled")["dag_run"], params) is None
    assert replicate.again_interval(None, {"from_t": 3, "to_t": None}) == (3, replicate.NEVER)


# Publish


def test_publish_returns_what_the_capture_counted(replicate, monkeypatch):
    from airflow.sdk import DAG

    from tidemark.app import replicate as app
    from tidemark.pipeline import loader

    monkeypatch.setattr(loader, "find_pipeline", lambda name: None)
    monkeypatch.setattr(replicate, "pipeline_connections", lambda declared: None)
    monkeypatch.setattr(app, "publish_run", lambda declared, connections, t: SimpleNamespace(end=11))
    with DAG("orders.replicate", schedule=None):
        task = replicate.publish("orders").operator
    captured = {"ids": [0, 11], "records": 12, "bytes": 900, "seconds": 1.5}
    context = given_context(results={"capture": captured})
    result = task.python_callable("7", **context)
    assert result == {"t": 7, "end": 11, **captured}
    assert [event.extra for event in context["outlet_events"].values()] == [result]
