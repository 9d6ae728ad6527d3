"""What the bulk writer sends is what Cassandra has: every type, every absence, every write time."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from cassandra import ConsistencyLevel
from cassandra.util import Duration

from tidemark.cassandra import cells
from tidemark.cassandra.bulk.batch_errors import BulkFailed
from tidemark.cassandra.bulk.writer import BulkStatement, BulkWriter
from tidemark.cassandra.cells import NULL, UNSET

pytestmark = pytest.mark.system

COLUMNS = {
    "key": "text",
    "label": "text",
    "payload": "blob",
    "small": "int",
    "large": "bigint",
    "moment": "timestamp",
    "day": "date",
    "record": "uuid",
    "after": "duration",
    "tags": "set<text>",
    "headers": "map<text, text>",
}
MILLISECONDS = 1_780_000_000_123
RECORD = UUID("6a1c4f9e-3d3b-4c8e-9d59-0d1b6a3f2e11")
FULL_ROW = {
    "label": cells.text("žluťoučký kůň"),
    "payload": cells.blob(bytes(range(256))),
    "small": cells.int_(-(2**31)),
    "large": cells.bigint(2**63 - 1),
    "moment": cells.timestamp(MILLISECONDS),
    "day": cells.date(date(1969, 12, 31)),
    "record": cells.uuid(RECORD),
    "after": cells.duration((1, 2, 3_600_000_000_000)),
    "tags": cells.text_set(["b", "a"]),
    "headers": cells.text_map({"x": "1", "": ""}),
}


@dataclass(frozen=True)
class Tables:
    """A table with every type, one with rows in order, and the statements to fill them."""

    session: Any
    keyspace: str
    typed: BulkStatement
    ordered: BulkStatement

    def writer(self, **options: Any) -> BulkWriter:
        return BulkWriter(self.session, ConsistencyLevel.LOCAL_QUORUM, **options)

    def typed_row(self, key: str, write_time: int, absent: bytes = UNSET, **given: bytes) -> bytes:
        values = {"key": cells.text(key)} | given
        return b"".join(values.get(name, absent) for name in COLUMNS) + cells.bigint(write_time)

    def read_typed(self, key: str) -> Any:
        return self.session.execute(f"SELECT * FROM {self.keyspace}.typed WHERE key = %s", (key,)).one()

    def read_ordered(self, key: str) -> list[int]:
        found = self.session.execute(f"SELECT number FROM {self.keyspace}.ordered WHERE key = %s", (key,))
        return [row.number for row in found]


@pytest.fixture(scope="module")
def tables(services: Any) -> Iterator[Tables]:
    session, keyspace = services.session, f"bulk_{uuid4().hex[:8]}"
    typed = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    for statement in (
        f"CREATE KEYSPACE {keyspace} WITH replication = "
        "{'class': 'SimpleStrategy', 'replication_factor': 1}",
        f"CREATE TABLE {keyspace}.typed ({typed}, PRIMARY KEY (key))",
        f"CREATE TABLE {keyspace}.ordered (key text, number int, payload blob, PRIMARY KEY (key, number))",
    ):
        session.execute(statement)
    yield Tables(
        session,
        keyspace,
        prepare(
            session,
            f"INSERT INTO {keyspace}.typed ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
            "USING TIMESTAMP ?",
        ),
        prepare(session, f"INSERT INTO {keyspace}.ordered (key, number, payload) VALUES (?, ?, ?)"),
    )
    session.execute(f"DROP KEYSPACE {keyspace}")


def prepare(session: Any, query: str) -> BulkStatement:
    return BulkStatement.of(session.prepare(query))


def ordered_row(key: str, number: int, payload: bytes = b"") -> bytes:
    return cells.text(key) + cells.int_(number) + cells.blob(payload)


def test_rows_read_are_the_rows_written(tables: Tables) -> None:
    with tables.writer(rows=37) as writer:
        for number in range(1000):
            writer.add(tables.ordered, ordered_row(f"many-{number % 7}", number))
    found = [number for key in range(7) for number in tables.read_ordered(f"many-{key}")]
    assert sorted(found) == list(range(1000))


def test_every_type_arrives_as_it_was(tables: Tables) -> None:
    with tables.writer() as writer:
        writer.add(tables.typed, tables.typed_row("types", 1, **FULL_ROW))
    row = tables.read_typed("types")
    assert (row.label, row.payload, row.small, row.large) == (
        "žluťoučký kůň",
        bytes(range(256)),
        -(2**31),
        2**63 - 1,
    )
    assert row.moment.replace(tzinfo=UTC) == datetime.fromtimestamp(MILLISECONDS / 1000, UTC)
    assert (row.day.date(), row.record) == (date(1969, 12, 31), RECORD)
    assert row.after == Duration(1, 2, 3_600_000_000_000)
    assert (set(row.tags), dict(row.headers)) == ({"a", "b"}, {"x": "1", "": ""})


def test_an_unset_cell_keeps_what_was_there(tables: Tables) -> None:
    with tables.writer() as writer:
        writer.add(tables.typed, tables.typed_row("unset", 1, **FULL_ROW))
        writer.add(tables.typed, tables.typed_row("unset", 2, label=cells.text("new")))
    row = tables.read_typed("unset")
    assert (row.label, row.small, set(row.tags)) == ("new", -(2**31), {"a", "b"})


def test_a_null_cell_removes_what_was_there(tables: Tables) -> None:
    with tables.writer() as writer:
        writer.add(tables.typed, tables.typed_row("null", 1, **FULL_ROW))
        writer.add(tables.typed, tables.typed_row("null", 2, absent=NULL))
    row = tables.read_typed("null")
    assert [getattr(row, name) for name in COLUMNS if name != "key"] == [None] * (len(COLUMNS) - 1)


def test_an_empty_set_replaces_a_full_one(tables: Tables) -> None:
    with tables.writer() as writer:
        writer.add(tables.typed, tables.typed_row("empty", 1, tags=cells.text_set(["a"])))
        writer.add(tables.typed, tables.typed_row("empty", 2, tags=cells.text_set([])))
    assert tables.read_typed("empty").tags is None


def test_the_later_write_time_wins_whatever_came_last(tables: Tables) -> None:
    with tables.writer() as writer:
        for write_time in (2, 3, 1):
            label = cells.text(f"written at {write_time}")
            writer.add(tables.typed, tables.typed_row("times", write_time, label=label))
            writer.flush()
    assert tables.read_typed("times").label == "written at 3"


def test_the_write_time_is_each_rows_own(tables: Tables) -> None:
    with tables.writer() as writer:
        for write_time in (11, 12):
            writer.add(tables.typed, tables.typed_row(f"own-{write_time}", write_time, small=cells.int_(1)))
    query = f"SELECT WRITETIME(small) AS at FROM {tables.keyspace}.typed WHERE key = %s"
    assert [tables.session.execute(query, (f"own-{at}",)).one().at for at in (11, 12)] == [11, 12]


def test_statements_on_different_tables_share_a_batch(tables: Tables) -> None:
    with tables.writer() as writer:
        writer.add(tables.typed, tables.typed_row("mixed", 1, small=cells.int_(7)))
        writer.add(tables.ordered, ordered_row("mixed", 1))
    assert writer.counts.batches == 1
    assert (tables.read_typed("mixed").small, tables.read_ordered("mixed")) == (7, [1])


def test_a_batch_above_the_failing_threshold_is_cut(tables: Tables) -> None:
    with tables.writer(wire_bytes=1_000_000) as writer:
        for number in range(100):
            writer.add(tables.ordered, ordered_row(f"cut-{number}", number, bytes(2000)))
    assert writer.counts.batches > 1
    assert [tables.read_ordered(f"cut-{number}") for number in range(100)] == [[n] for n in range(100)]


def test_a_row_above_the_failing_threshold_is_written(tables: Tables) -> None:
    with tables.writer() as writer:
        writer.add(tables.ordered, ordered_row("long", 1, bytes(1_000_000)))
    assert tables.read_ordered("long") == [1]


def test_a_row_that_no_message_can_carry_is_refused(tables: Tables) -> None:
    writer = tables.writer()
    writer.add(tables.ordered, ordered_row("longest", 1, bytes(17_000_000)))
    with pytest.raises(BulkFailed, match="refuses a row") as caught:
        writer.flush()
    assert caught.value.tables == (f"{tables.keyspace}.ordered",)


ALTERED = "CREATE TABLE {table} (key text PRIMARY KEY, number int)"


@pytest.mark.parametrize(
    "changes",
    [("ALTER TABLE {table} ADD further text",), ("DROP TABLE {table}", ALTERED)],
    ids=["altered", "made again"],
)
def test_a_statement_that_the_server_has_forgotten_is_prepared_again(
    tables: Tables, changes: tuple[str, ...]
) -> None:
    table = f"{tables.keyspace}.altered_{len(changes)}"
    tables.session.execute(ALTERED.format(table=table))
    statement = prepare(tables.session, f"INSERT INTO {table} (key, number) VALUES (?, ?)")
    for change in changes:
        tables.session.execute(change.format(table=table))
    with tables.writer() as writer:
        writer.add(statement, cells.text("a") + cells.int_(1))
    assert tables.session.execute(f"SELECT number FROM {table} WHERE key = 'a'").one().number == 1
