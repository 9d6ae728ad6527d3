"""A fake cluster in whose time the bulk writer lives."""

from types import SimpleNamespace

import pytest
from tests.support.fake_cluster import FakeCluster, SteppedQueue

from tidemark.cassandra.bulk import writer as bulk


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    return live_in(FakeCluster(), monkeypatch)


@pytest.fixture
def large_cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """Four nodes, every row on two of them."""
    return live_in(FakeCluster(nodes=4, replication=2), monkeypatch)


def live_in(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    monkeypatch.setattr(bulk, "SimpleQueue", lambda: SteppedQueue(cluster))
    monkeypatch.setattr(bulk, "time", SimpleNamespace(monotonic=lambda: cluster.now))
    return cluster
