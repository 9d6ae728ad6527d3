"""Finding expired entities."""

from datetime import date
from types import SimpleNamespace

import pytest
from tests.support.memory_heads import DAY, MemoryHeads, given_head

from tidemark.expiry.heads import EntityHead, HeadsUnreadable, JournalHeads, find_expired
from tidemark.journal.segments import head_segments
from tidemark.journal_tables import statements as journal_tables

pytestmark = pytest.mark.unit

NEXT = date(2026, 11, 17)


def test_days_are_asked_one_by_one_and_an_entity_is_found_once() -> None:
    heads = MemoryHeads(
        EntityHead("orders", "a", given_head()),
        EntityHead("orders", "a", given_head(segment=5)),
        EntityHead("orders", "b", given_head(NEXT, seq_nr=3)),
        EntityHead("orders", "c", given_head(None)),
        EntityHead("strangers", "a", given_head()),
    )
    found = list(find_expired(heads, [DAY, NEXT], lambda topic: topic == "orders"))
    assert [(one.day, one.key, one.rows) for one in found] == [(DAY, "a", 1), (NEXT, "b", 3)]
    assert heads.asked == [DAY, NEXT]


@pytest.fixture
def journal(monkeypatch):
    """A writer whose tables are what a test puts into ``rows``."""
    rows: dict[tuple[int, str], SimpleNamespace] = {}

    def read_heads(topic: str, wanted):
        assert topic == "orders"
        return [rows[segment, key] for segment, keys in wanted for key in keys if (segment, key) in rows]

    monkeypatch.setattr("tidemark.expiry.heads.connect", lambda _: SimpleNamespace())
    monkeypatch.setattr(journal_tables.JournalTables, "of", lambda *_: SimpleNamespace(read_heads=read_heads))
    declared = SimpleNamespace()
    writer = SimpleNamespace(connection=None, declared=declared, pipeline="orders", name="cassandra")
    return SimpleNamespace(heads=JournalHeads(writer), rows=rows)


def row(segment: int, key: str, offset: int) -> SimpleNamespace:
    columns = dict.fromkeys(
        ("segment_size", "delete_to", "created", "updated", "expire_after", "record_id", "origin")
    )
    columns |= {"segment": segment, "id": key, "partition": 0, "offset": offset, "seq_nr": 1}
    return SimpleNamespace(**columns, expire_on=DAY)


def test_the_head_in_todays_segment_counts_before_the_old_one(journal) -> None:
    key = "persistence-id-0001"
    today, old = head_segments(key)
    journal.rows |= {(today, key): row(today, key, 9), (old, key): row(old, key, 2)}
    assert journal.heads.of_entities("orders", [key, "nobody"])[key].offset == 9
    del journal.rows[today, key]
    assert journal.heads.of_entities("orders", [key])[key].offset == 2
    assert journal.heads.of_entities("orders", ["nobody"]) == {}


def test_a_database_that_does_not_answer_is_said_in_one_sentence(journal, monkeypatch) -> None:
    from cassandra.cluster import NoHostAvailable

    def fail(_):
        raise NoHostAvailable("no hosts", {})

    monkeypatch.setattr("tidemark.expiry.heads.connect", fail)
    for ask in (
        lambda: list(journal.heads.expired_on(DAY)),
        lambda: journal.heads.of_entities("orders", ["a"]),
    ):
        with pytest.raises(HeadsUnreadable, match="Nothing was sent"):
            ask()
