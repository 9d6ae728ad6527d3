"""Sessions are shared by all threads of a process that want the same connection."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Event
from typing import Any

import pytest

from tidemark.cassandra import session
from tidemark.connections import CassandraConnection

pytestmark = pytest.mark.unit

THREADS = 4


def test_threads_that_ask_at_the_same_time_get_the_same_session(monkeypatch):
    # Given: a session that is not open before every thread has asked for it.
    opened: list[object] = []
    asked, all_have_asked = count(1), Event()

    class CountedConnection(CassandraConnection):
        """``connect`` reads a connection before it looks for its session."""

        def revealed(self) -> dict[str, Any]:
            if next(asked) == THREADS:
                all_have_asked.set()
            return super().revealed()

    def open_slowly(connection: CassandraConnection) -> object:
        assert all_have_asked.wait(30), "not every thread has asked"
        opened.append(object())
        return opened[-1]

    monkeypatch.setattr(session, "_sessions", {})
    monkeypatch.setattr(session, "_open", open_slowly)
    connection = CountedConnection(hosts=("127.0.0.1",), port=1)

    # When: several threads ask at once.
    with ThreadPoolExecutor(THREADS) as threads:
        found = list(threads.map(session.connect, [connection] * THREADS))

    # Then: one was opened, for all.
    assert (len(opened), {id(one) for one in found}) == (1, {id(opened[0])})


def test_a_fork_while_a_session_is_opened_leaves_no_lock_behind():
    with session._opening:
        session._renew_lock()
        assert not session._opening.locked()


@pytest.mark.parametrize(
    ("hosts", "is_compressed"),
    [
        (("127.0.0.1",), False),
        (("localhost", "::1"), False),
        (("db1.example.org",), True),
        (("127.0.0.1", "10.0.0.7"), True),
    ],
)
def test_requests_are_compressed_only_where_they_cross_a_network(monkeypatch, hosts, is_compressed):
    asked: dict[str, Any] = {}

    class Cluster:
        def __init__(self, *_: object, **options: Any) -> None:
            asked.update(options)

        def connect(self) -> None:
            return None

    monkeypatch.setattr(session, "Cluster", Cluster)
    session._open(CassandraConnection(hosts=hosts, port=1))
    assert asked["compression"] is is_compressed
