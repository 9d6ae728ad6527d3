"""What waits for a gate waits through whatever happens to the control plane meanwhile."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.delivery.writer_state import Cause, WriterGate

pytestmark = pytest.mark.system

CLOSED = WriterGate(Cause.HAND, 3, 3, 2, "stopped by ann", 0)


@pytest.fixture
def answers(dag_bag: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the control plane says, one look after the other: a gate, none, or an error."""
    from tidemark_airflow import gates

    answers: list[Any] = []

    def stopped() -> dict[str, WriterGate]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"journal": answer} if answer else {}

    monkeypatch.setattr(gates, "open_pipeline", lambda name: SimpleNamespace(stopped=stopped))
    return answers


def wait() -> Any:
    """What a deferred run is told in the end."""
    from tidemark_airflow.gates import GateTrigger

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


def test_while_it_waits_it_says_that_nobody_answers(answers: list[Any]) -> None:
    from tidemark_airflow.gates import GateTrigger

    answers.append(ConnectionError("no host available"))
    said = GateTrigger("orders", "journal")._reason()
    assert said == ("orders/journal: the control plane does not answer: ConnectionError: no host available")
