"""A trigger waits for as long as it has a reason, and logs each reason once."""

import asyncio
import logging
from typing import Any, ClassVar

import pytest

pytestmark = pytest.mark.unit


def given_trigger(*reasons: str | None) -> Any:
    from tidemark_airflow.triggers.writer import WriterTrigger

    class Scripted(WriterTrigger):
        left: ClassVar = list(reasons)

        def _reason(self) -> str | None:
            return self.left.pop(0)

    return Scripted("orders", "journal", every=0)


def run(trigger: Any) -> list[Any]:
    async def events() -> list[Any]:
        return [event.payload async for event in trigger.run()]

    return asyncio.run(events())


def test_it_fires_once_when_there_is_no_reason_left():
    trigger = given_trigger("closed", "closed", None)
    assert (run(trigger), trigger.left) == ([{"writer": "journal"}], [])


def test_it_logs_a_reason_only_when_it_changes(monkeypatch):
    trigger, logged = given_trigger("closed", "closed", "unreachable", "closed", None), []
    monkeypatch.setattr(type(trigger), "log", property(lambda self: logging.getLogger("test")))
    monkeypatch.setattr(logging.getLogger("test"), "info", lambda text, reason: logged.append(reason))
    run(trigger)
    assert logged == ["closed", "unreachable", "closed"]
