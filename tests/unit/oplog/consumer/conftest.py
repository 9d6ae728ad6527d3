"""Consumers of a scripted agent on loopback."""

import pytest

from tidemark.oplog.consumer import backoff


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are made again at once."""
    monkeypatch.setattr(backoff, "FIRST", 0.001)
