"""A journal is reachable when it could be written to, not when some node answers."""

import pytest
from tests.support.journal_samples import WriterInMemory, journal_writer
from tests.support.memory_journal import MemoryJournal, MemoryTables, fails_after

from tidemark.log.model.binding import TopicPartition
from tidemark.writers.journal import writer as journal

pytestmark = pytest.mark.unit


class WithoutQuorum(MemoryTables):
    """Too few nodes are up for what the writer asks."""

    def read_pointers(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        raise ConnectionError("2 replicas are needed, and 1 is alive")


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> WriterInMemory:
    """One of whose cluster a node knows the time."""
    monkeypatch.setattr(journal, "connect", lambda connection: None)
    monkeypatch.setattr(journal, "server_time", lambda session: 1)
    return journal_writer(WithoutQuorum(MemoryJournal()))


def test_a_cluster_without_a_quorum_is_not_reachable(writer, monkeypatch):
    monkeypatch.setattr(journal, "are_there", lambda session, declared: True)
    with pytest.raises(ConnectionError, match="1 is alive"):
        writer.is_reachable()


def test_before_there_are_tables_one_node_is_enough(writer, monkeypatch):
    monkeypatch.setattr(journal, "are_there", lambda session, declared: False)
    writer.is_reachable()


def test_a_cluster_that_does_not_know_the_time_is_not_reachable(writer, monkeypatch):
    def silent(session: object) -> int:
        raise ConnectionError("no host available")

    monkeypatch.setattr(journal, "server_time", silent)
    with pytest.raises(ConnectionError, match="no host"):
        writer.is_reachable()


def test_i04_tables_that_can_be_read_but_not_written_are_not_reachable(monkeypatch):
    monkeypatch.setattr(journal, "connect", lambda connection: None)
    monkeypatch.setattr(journal, "server_time", lambda session: 1)
    monkeypatch.setattr(journal, "are_there", lambda session, declared: True)
    tables = MemoryTables(MemoryJournal(), fails_after(0))
    with pytest.raises(ConnectionError, match="no answer"):
        journal_writer(tables).is_reachable()
    assert tables.written == []
