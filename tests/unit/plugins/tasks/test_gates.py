"""The tasks about gates: resumes to start, failed runs, the summary of a run."""

from typing import Any

import pytest
from tests.support.airflow_context import given_context
from tests.support.pipeline_world import given_stopped_at

from tidemark.delivery.state.writer_state import Cause, WriterGate

pytestmark = pytest.mark.unit


@pytest.fixture
def gates(monkeypatch, opened):
    from tidemark_airflow.tasks import gates

    monkeypatch.setattr(gates, "open_pipeline", lambda name: opened)
    return gates


# Resumes to start


def test_a_first_failure_starts_one_resume_per_closing(gates, house, stream):
    given_stopped_at(house, 2, stream)
    (started,) = gates.find_stopped.function("orders")
    version = house.positions.load("stream").gate.version
    assert started == {
        "trigger_run_id": f"auto__stream__gate_{version}",
        "conf": {"writer": "stream"},
    }


def test_a_gate_that_an_operator_closed_starts_none(gates, house, stream, capsys):
    house.register(stream)
    house.close_gate(stream, WriterGate(Cause.HAND, 0, 0, -1, "stopped by ann", 0))
    assert gates.find_stopped.function("orders") == []
    assert "tidemark gate open orders stream" in capsys.readouterr().out


def test_without_stopped_writers_there_is_nothing_to_start(gates, house, stream):
    house.deliver(stream)
    assert gates.find_stopped.function("orders") == []


# A run fails while a failure keeps a writer stopped


def test_a_failure_fails_the_run_with_the_way_out(gates, house, stream):
    from airflow.sdk.exceptions import AirflowFailException

    given_stopped_at(house, 2, stream)
    with pytest.raises(AirflowFailException, match="orders: writer stream is stopped, everything else was"):
        gates.check_gates.function("orders")


def test_several_are_named_together(gates, opened, house, stream):
    given_stopped_at(house, 2, stream)
    line = gates.stopped_line(opened, ["stream", "stream"])
    assert line.startswith("orders: writers stream, stream are stopped")


def test_open_gates_are_the_result(gates, house, stream):
    house.deliver(stream)
    assert gates.check_gates.function("orders") == {"stream": "open"}


# The summary of a run


def one(**changes: Any) -> dict[str, Any]:
    usual = {"failure": None, "stopped_now": False, "gate": None, "position": 7}
    return {**usual, "written": 3, "filtered": 1, "ignored": 0, **changes}


def sum_up(gates: Any, delivered: Any) -> Any:
    from airflow.sdk import DAG

    with DAG("orders.replicate", schedule=None):
        task = gates.check_writers("orders").operator
    context = given_context(results={"deliver": delivered})
    return task.python_callable(**context), context["outlet_events"]


def test_the_summary_is_also_the_event_of_the_asset(gates):
    result, events = sum_up(gates, {"end": 9, "writers": {"stream": one()}})
    assert (result["records"], result["positions"], result["lag"]) == (4, {"stream": 7}, {"stream": 2})
    assert [(asset.name, event.extra) for asset, event in events.items()] == [("orders.delivered", result)]


def test_a_run_that_delivered_nothing_is_skipped(gates):
    from airflow.sdk.exceptions import AirflowSkipException

    with pytest.raises(AirflowSkipException, match="orders: nothing was delivered"):
        sum_up(gates, None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"failure": "no host"}, "stream: no host"),
        ({"stopped_now": True, "gate": {"reason": "id 3 is bad"}}, "stream: id 3 is bad"),
    ],
)
def test_a_writer_that_stopped_fails_the_run(gates, changes, said):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match=f"not everything was delivered. {said}"):
        sum_up(gates, {"end": 9, "writers": {"stream": one(**changes), "other": one()}})


def test_the_task_of_a_gate_has_the_writers_name(gates):
    assert gates.gate_task("stream") == "gate_stream"
