"""The operator that starts a replication where a synchronisation would otherwise wait for one."""

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator

pytestmark = pytest.mark.unit


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Any:
    """``start(waits=…, followed=…)``: whether a run is started."""
    from tidemark.app import sync as app
    from tidemark.log.state import followed as state
    from tidemark_airflow.operators import start_replication as module

    def started(*, waits: bool, followed: bool = False) -> list[str]:
        found: list[str] = []
        row = SimpleNamespace(is_current=lambda now: True) if followed else None
        monkeypatch.setattr(module, "open_pipeline", lambda name: SimpleNamespace(consensus=None))
        monkeypatch.setattr(
            app, "open_sync", lambda opened: SimpleNamespace(read_topic=lambda: SimpleNamespace(ends={0: 5}))
        )
        monkeypatch.setattr(state, "read_followed", lambda *given: row)
        monkeypatch.setattr(module, "why_not_collected", lambda *given: "not yet" if waits else None)
        monkeypatch.setattr(
            TriggerDagRunOperator, "execute", lambda self, context: found.append(self.trigger_dag_id)
        )
        module.StartReplicationOperator(task_id="replicate", pipeline="events").execute({})
        return found

    return started


def test_what_is_waited_for_is_replicated(start):
    assert start(waits=True) == ["events.replicate"]


def test_nothing_is_started_where_the_collection_has_everything(start):
    assert start(waits=False) == []


def test_nothing_is_started_where_the_pipeline_is_followed(start):
    assert start(waits=True, followed=True) == []
