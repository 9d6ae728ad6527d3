"""What waits for a gate waits through whatever happens to the control plane meanwhile."""

import asyncio
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.delivery.operator.advice import advise
from tidemark.delivery.state.writer_state import Cause, WriterGate, WriterState
from tidemark.pipeline.model import StoppedWriters

pytestmark = pytest.mark.system

CLOSED = WriterGate(Cause.HAND, 3, 3, 2, "stopped by ann", 0)


@pytest.fixture
def answers(dag_bag: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the control plane says, one look after the other: a gate, none, or an error."""
    from tidemark_airflow.triggers import gate

    answers: list[Any] = []

    def opened(name: str) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return given_pipeline(answer)

    monkeypatch.setattr(gate, "open_pipeline", opened)
    return answers


def given_pipeline(gate: WriterGate | None, mode: StoppedWriters = StoppedWriters.FAIL) -> Any:
    """An opened pipeline ``orders`` with one writer."""
    state = WriterState("orders", "journal", 7, 2, {}, gate)
    writers = (SimpleNamespace(name="journal"),)
    return SimpleNamespace(
        pipeline=SimpleNamespace(name="orders", stopped_writers=mode, writers=writers),
        stopped=lambda: {"journal": gate} if gate else {},
        advice=lambda name: advise(state, ()),
    )


def wait() -> Any:
    """What a deferred run is told in the end."""
    from tidemark_airflow.triggers.gate import GateTrigger

    async def first() -> Any:
        async for event in GateTrigger("orders", "journal", every=0).run():
            return event.payload

    return asyncio.run(first())


def test_a_run_goes_on_when_the_gate_is_open(answers: list[Any]) -> None:
    answers += [CLOSED, CLOSED, None]
    assert (wait(), answers) == ({"writer": "journal"}, [])


def test_a_restart_of_the_control_plane_does_not_end_the_wait(answers: list[Any]) -> None:
    answers += [CLOSED, ConnectionError("no host available"), CLOSED, None]
    assert (wait(), answers) == ({"writer": "journal"}, [])


def test_while_it_waits_it_says_that_there_is_no_answer(answers: list[Any]) -> None:
    from tidemark_airflow.triggers.gate import GateTrigger

    answers.append(ConnectionError("no host available"))
    said = GateTrigger("orders", "journal")._reason()
    assert said == ("orders/journal: the control plane does not answer: ConnectionError: no host available")


# A stopped writer stays visible (item 21)


def closed(cause: Cause) -> WriterGate:
    return WriterGate(cause, 3, 3, 5, "it makes no sense", 0)


@pytest.fixture
def check(dag_bag: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What ``check_gates`` says of a pipeline."""
    from tidemark_airflow.tasks import gates

    def checked(gate: WriterGate | None, mode: StoppedWriters = StoppedWriters.FAIL) -> Any:
        monkeypatch.setattr(gates, "open_pipeline", lambda name: given_pipeline(gate, mode))
        return gates.check_gates.function("orders")

    return checked


@pytest.mark.parametrize("cause", [Cause.MESSAGE, Cause.TARGET, Cause.VERIFICATION])
def test_a_run_is_failed_while_a_failure_keeps_a_writer_stopped(check: Any, cause: Cause) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException) as failed:
        check(closed(cause))
    said = str(failed.value)
    assert said.startswith("orders: writer journal is stopped, everything else was done. orders/journal: ")
    assert ("tidemark resume orders journal" in said, "stopped_writers: skip" in said) == (True, True)
    assert "\n" not in said


@pytest.mark.parametrize("cause", list(Cause))
def test_a_pipeline_may_skip_its_stopped_writers(check: Any, cause: Cause, capsys: Any) -> None:
    assert check(closed(cause), StoppedWriters.SKIP) == {"journal": "stopped"}
    assert "the gate is closed at id 3" in capsys.readouterr().out


def test_a_writer_that_an_operator_stopped_fails_no_run(check: Any, capsys: Any) -> None:
    assert check(closed(Cause.HAND)) == {"journal": "stopped"}
    assert "tidemark gate open orders journal" in capsys.readouterr().out


def test_open_gates_are_nothing_to_fail_for(check: Any) -> None:
    assert check(None) == {"journal": "open"}


def test_the_gates_are_checked_after_every_delivery_however_it_ended(dag_bag: Any) -> None:
    for dag in (dag for name, dag in dag_bag.dags.items() if name.endswith(".replicate")):
        task = dag.get_task("check_gates")
        assert (task.trigger_rule, task.downstream_task_ids) == ("all_done", set())
        assert task.upstream_task_ids == {"bind", "deliver"}


# What a resume asks (item 4)


@pytest.mark.parametrize(
    ("gate", "offered"),
    [
        pytest.param(closed(Cause.MESSAGE), ["Retry", "Acknowledge and dead-letter", "Stop"], id="a message"),
        pytest.param(closed(Cause.TARGET), ["Retry", "Stop"], id="the target"),
        pytest.param(closed(Cause.VERIFICATION), ["Retry", "Stop"], id="a verification"),
        pytest.param(
            WriterGate(Cause.MESSAGE, 2, 2, 5, "it makes no sense", 0), ["Retry", "Stop"], id="acknowledged"
        ),
    ],
)
def test_only_a_message_that_failed_may_be_acknowledged(
    dag_bag: Any, monkeypatch: pytest.MonkeyPatch, gate: WriterGate, offered: list[str]
) -> None:
    from airflow.providers.standard.operators import hitl
    from airflow.sdk.exceptions import TaskAwaitingInput

    from tidemark_airflow.operators import resume_question

    asked: dict[str, Any] = {}
    monkeypatch.setattr(resume_question, "open_pipeline", lambda name: given_pipeline(gate))
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **keys: asked.update(keys))
    (dag,) = (dag for name, dag in dag_bag.dags.items() if name == "orders.resume")
    question = deepcopy(dag.get_task("ask"))
    question.writer = "journal"
    with pytest.raises(TaskAwaitingInput):
        question.execute({"task_instance": SimpleNamespace(id="ti")})
    assert asked["options"] == offered
    assert set(asked["params"]) == ({"reason"} if len(offered) == 3 else set())
    assert "tidemark resume orders journal" in asked["body"]
    assert ("offsets ack" in asked["body"]) is False  # it failed only once


def test_the_question_names_what_failed(dag_bag: Any) -> None:
    from tidemark_airflow.operators.resume_question import body_of, subject_of

    of = {cause: given_pipeline(closed(cause)).advice("journal") for cause in (Cause.MESSAGE, Cause.TARGET)}
    assert subject_of(of[Cause.MESSAGE]) == "orders/journal: id 3 failed again"
    assert subject_of(of[Cause.TARGET]) == "orders/journal: its target failed again"
    assert "so none can be acknowledged" in body_of(of[Cause.TARGET])
    assert "with your reason, which is needed" in body_of(of[Cause.MESSAGE])
