"""Agents that do not wait before they try again."""

import pytest


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemark.oplog.agent.streams.service.NEXT_LIFE_AFTER", 0.01)
    monkeypatch.setattr("tidemark.oplog.agent.streams.hub.hub.RECONNECT_AFTER", 0.01)
