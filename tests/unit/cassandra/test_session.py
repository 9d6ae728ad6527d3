"""Sessions are shared by everybody in a process who wants the same connection."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tidemark.cassandra import session
from tidemark.connections import CassandraConnection

pytestmark = pytest.mark.unit


def test_threads_that_ask_at_the_same_time_get_the_same_session(monkeypatch):
    # Given: sessions that take a moment to open.
    opened: list[object] = []
    asking = Barrier(4)

    def open_slowly(connection: CassandraConnection) -> object:
        opened.append(object())
        return opened[-1]

    monkeypatch.setattr(session, "_sessions", {})
    monkeypatch.setattr(session, "_open", open_slowly)
    connection = CassandraConnection(hosts=("127.0.0.1",), port=1)

    def ask() -> object:
        asking.wait()
        return session.connect(connection)

    # When: several threads ask at once.
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: ask(), range(4)))

    # Then: one was opened, for all.
    assert (len(opened), {id(one) for one in found}) == (1, {id(opened[0])})


def test_a_fork_while_a_session_is_opened_leaves_no_lock_behind():
    with session._opening:
        session._renew_lock()
        assert not session._opening.locked()
