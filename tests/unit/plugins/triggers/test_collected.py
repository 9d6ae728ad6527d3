"""The trigger of a synchronisation: waits until the collection has everything before some offsets."""

from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.oplog.sync.errors import CollectionBehind

pytestmark = pytest.mark.unit


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Any:
    from tidemark.app import sync as app
    from tidemark_airflow.triggers import collected

    def reached(topic: Any, ends: dict[int, int]) -> None:
        if ends[0] > 5:
            raise CollectionBehind("events", "objects", ends)

    control = SimpleNamespace(log_gate=lambda: collected.of_log)
    sync = SimpleNamespace(writer="objects", read_topic=lambda: None, reached=reached, control=control)
    opened = SimpleNamespace(
        stopped=lambda: collected.of_test,
        advice=lambda name: SimpleNamespace(sentence="The gate is closed."),
        pipeline=SimpleNamespace(name="events"),
    )
    collected.of_test, collected.of_log = {}, None
    monkeypatch.setattr(collected, "open_pipeline", lambda name: opened)
    monkeypatch.setattr(app, "open_sync", lambda given: sync)
    return collected


def test_offsets_that_the_collection_has_are_no_reason(collected):
    assert collected.why_not_collected("events", {0: 5}) is None


def test_offsets_that_it_does_not_have_are_named(collected):
    assert "partition 0 before offset 6" in collected.why_not_collected("events", {0: 6})


def test_a_closed_gate_adds_what_to_do(collected):
    collected.of_test = {"objects": "closed"}
    assert "The gate is closed." in collected.why_not_collected("events", {0: 6})


def test_a_closed_gate_of_the_log_says_why(collected):
    collected.of_log = SimpleNamespace(reason="oplog has 3 partitions instead of 2.")
    assert "3 partitions instead of 2" in collected.why_not_collected("events", {0: 6})


def test_an_error_is_a_reason_to_wait(collected, monkeypatch):
    def fail(*given: Any) -> None:
        raise ConnectionError("no host available")

    monkeypatch.setattr(collected, "why_not_collected", fail)
    trigger = collected.CollectedTrigger("events", "objects", [(0, 6)])
    assert trigger._reason() == "ConnectionError: no host available"


def test_a_trigger_serializes_to_what_makes_it_again(collected):
    path, keys = collected.CollectedTrigger("events", "objects", [(0, 6)], 1.0).serialize()
    assert path == "tidemark_airflow.triggers.collected.CollectedTrigger"
    assert collected.CollectedTrigger(**keys).serialize() == (path, keys)
