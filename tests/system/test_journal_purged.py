"""Purged is purged: nothing that is delivered again brings an entity back, with its tombstones or without."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.services.journal_runs import read_pointers, read_visible
from tests.support.services.journal_world import CassandraJournalWorld, Record, given_keyspace, twice
from tests.support.services.node_tool import flush_and_compact
from tests.support.waiting import wait_until

from tidemark.delivery.binding_steps import write_parts_here
from tidemark.journal.action import Action, Delete, Purge, append
from tidemark.journal.codec.record import write_action
from tidemark.journal.events import EncodedEvent, Events
from tidemark.journal.segments import head_segment

pytestmark = pytest.mark.system

SIZE = 2
DEFAULT_GRACE = 864_000
SENT_AT = 1_750_000_000_000


def appended(key: str, first: int, last: int) -> Action:
    return append(
        key, 0, Events(tuple(EncodedEvent(n, ("t",), "text", f"{key} {n}") for n in range(first, last + 1)))
    )


def topic_of(house: CassandraJournalWorld) -> str:
    """Every test has its own."""
    return house.root.name


def given_record(house: CassandraJournalWorld, offset: int, action: Action) -> Record:
    key, value, _, headers = write_action(action)
    return Record(topic_of(house), 0, offset, key, value, SENT_AT + offset, headers)


HISTORY: tuple[tuple[Action, ...], ...] = (
    (appended("gone", 1, 7), appended("back", 1, 5), appended("kept", 1, 3), appended("short", 1, 2)),
    (
        appended("gone", 8, 9),
        Delete("gone", 0, 4),
        Delete("kept", 0, 1),
        Purge("short", 0),
        appended("late", 1, 1),
    ),
    (Purge("gone", 0), Purge("back", 0), Purge("never", 0)),
    (appended("back", 1, 1), Purge("late", 0)),
)
"""One binding each."""


@pytest.fixture(scope="module")
def keyspace(services: Any) -> Iterator[str]:
    with given_keyspace(services.cassandra, "purged") as keyspace:
        yield keyspace


@pytest.fixture
def house(services: Any, keyspace: str, tmp_path: Path) -> CassandraJournalWorld:
    """The history, delivered."""
    house = CassandraJournalWorld(tmp_path, services.cassandra, keyspace, SIZE)
    offset, now = 0, time.time_ns() // 1000
    for actions in HISTORY:
        records = [given_record(house, offset + number, action) for number, action in enumerate(actions)]
        house.publish(now, records)
        offset += len(actions)
    house.deliver()
    assert (house.state.gate, house.state.position) == (None, offset - 1)
    return house


def seen(house: CassandraJournalWorld) -> Any:
    """What a reader can tell, and every row there is, readable or not."""
    topic = topic_of(house)
    rows = house.session.execute(f"SELECT id, topic, seq_nr FROM {house.keyspace}.journal")
    return (
        read_visible(house.session, house.keyspace, topic),
        read_pointers(house.session, house.keyspace, topic),
        sorted((row.id, row.seq_nr) for row in rows if row.topic == topic),
    )


def collect_tombstones(house: CassandraJournalWorld) -> None:
    """Let Cassandra forget what was deleted, and see that it has.

    Grace is put back afterwards, so that the writer accepts the tables.
    """
    assert not is_forgotten(house, "gone")
    tables = [f"{house.keyspace}.{table}" for table in ("journal", "metajournal", "pointer2")]
    for table in tables:
        house.session.execute(f"ALTER TABLE {table} WITH gc_grace_seconds = 0")
    # A tombstone may go in the second after the one it was written in.
    written_in = int(time.time())
    wait_until(lambda: time.time() >= written_in + 2, 5, "the next second")
    flush_and_compact(house.connection.port, house.keyspace)
    for table in tables:
        house.session.execute(f"ALTER TABLE {table} WITH gc_grace_seconds = {DEFAULT_GRACE}")
    for key in ("gone", "short", "late"):
        assert is_forgotten(house, key), key


def is_forgotten(house: CassandraJournalWorld, key: str) -> bool:
    """Whether a row and a head that are older than the purge can be seen; they are removed again."""
    moment, old = datetime.fromtimestamp(0, UTC), "USING TIMESTAMP 1"
    row = (key, topic_of(house), 0, 1, moment)
    head = (key, topic_of(house), head_segment(key))
    rows, heads = f"{house.keyspace}.journal", f"{house.keyspace}.metajournal"
    of_row = "id = %s AND topic = %s AND segment = %s AND seq_nr = %s AND timestamp = %s"
    of_head = "id = %s AND topic = %s AND segment = %s"
    execute = house.session.execute
    execute(
        f"INSERT INTO {rows} (id, topic, segment, seq_nr, timestamp) VALUES (%s, %s, %s, %s, %s) {old}", row
    )
    execute(f"INSERT INTO {heads} (id, topic, segment) VALUES (%s, %s, %s) {old}", head)
    found = [
        execute(f"SELECT id FROM {rows} WHERE {of_row}", row).one(),
        execute(f"SELECT id FROM {heads} WHERE {of_head}", head).one(),
    ]
    execute(f"DELETE FROM {rows} {old} WHERE {of_row}", row)
    execute(f"DELETE FROM {heads} {old} WHERE {of_head}", head)
    return None not in found


@pytest.mark.parametrize("to", [3, 2**63 - 1], ids=["a number", "whatever there is"])
def test_a_purge_behind_any_delete_can_be_written_twice(
    services: Any, keyspace: str, tmp_path: Path, to: int
) -> None:
    """The second time the delete finds no entity, so it makes one that claims to have got that far."""
    actions = (appended("gone", 1, 3), Delete("gone", 0, to), appended("gone", 4, 5), Purge("gone", 0))
    house = CassandraJournalWorld(tmp_path, services.cassandra, keyspace, SIZE)
    first, *others = [given_record(house, *one) for one in enumerate(actions)]
    for records in ([first], others):
        house.publish(time.time_ns() // 1000, records)
    house.deliver(twice(write_parts_here))
    assert (house.state.gate, seen(house)) == (None, ({}, {0: 3}, []))


def rewound(house: CassandraJournalWorld) -> None:
    house.rewind(-1)
    delivered = house.deliver()
    assert (delivered.gate, delivered.position) == (None, house.log.end)


def backfilled(house: CassandraJournalWorld) -> None:
    delivered = house.deliver_again()
    assert (delivered.gate, delivered.failure) == (None, None)


def test_the_history_is_there_without_what_was_purged(house: CassandraJournalWorld) -> None:
    visible, pointers, rows = seen(house)
    assert visible.keys() == {"back", "kept"}
    assert rows == [("back", 1), ("kept", 2), ("kept", 3)]
    assert pointers == {0: sum(map(len, HISTORY)) - 1}


@pytest.mark.parametrize("again", [rewound, backfilled])
def test_nothing_comes_back(house: CassandraJournalWorld, again: Any) -> None:
    before = seen(house)
    again(house)
    assert seen(house) == before


def test_nothing_comes_back_when_its_tombstones_are_gone(house: CassandraJournalWorld) -> None:
    # Given: the tables remember nothing of what was purged but their pointers.
    before = seen(house)
    collect_tombstones(house)
    assert seen(house) == before

    # When: everything is delivered again, by a backfill and after a rewind to the beginning.
    backfilled(house)
    after_backfill = seen(house)
    rewound(house)

    # Then: a reader cannot tell, and there is no row that was not there.
    assert (after_backfill, seen(house)) == (before, before)
