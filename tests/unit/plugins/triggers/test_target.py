"""The trigger of a target: tries again with growing pauses."""

import asyncio
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.unit


@pytest.fixture
def target(monkeypatch):
    from tidemark_airflow.triggers import target

    return target


def test_pauses_double_up_to_a_limit(target, monkeypatch):
    reasons, pauses = ["down"] * 6, []
    monkeypatch.setattr(target, "why_unreachable", lambda *name: reasons.pop() if reasons else None)

    async def sleep(seconds):
        pauses.append(seconds)

    monkeypatch.setattr(target.asyncio, "sleep", sleep)

    async def events():
        return [event.payload async for event in target.TargetTrigger("orders", "stream").run()]

    assert asyncio.run(events()) == [{"writer": "stream"}]
    assert pauses == [1.0, 2.0, 4.0, 8.0, 15.0, 15.0]


def test_the_reason_names_the_error(target, monkeypatch):
    def unreachable():
        raise OSError("no space left")

    found = SimpleNamespace(writer=lambda name: SimpleNamespace(is_reachable=unreachable))
    monkeypatch.setattr(target, "open_pipeline", lambda name: found)
    assert target.why_unreachable("orders", "stream") == "OSError: no space left"


def test_a_target_that_answers_is_no_reason(target, monkeypatch):
    found = SimpleNamespace(writer=lambda name: SimpleNamespace(is_reachable=lambda: None))
    monkeypatch.setattr(target, "open_pipeline", lambda name: found)
    assert target.why_unreachable("orders", "stream") is None


def test_a_trigger_serializes_to_what_makes_it_again(target):
    path, keys = target.TargetTrigger("orders", "stream").serialize()
    assert path == "tidemark_airflow.triggers.target.TargetTrigger"
    assert target.TargetTrigger(**keys).serialize() == (path, keys)
