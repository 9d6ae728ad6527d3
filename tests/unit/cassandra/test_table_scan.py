"""A scan gives every row of every part exactly once, or says which part it could not read."""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from cassandra import InvalidRequest, OperationTimedOut, ReadFailure, Unavailable
from hypothesis import given
from hypothesis import strategies as st
from tests.support.table_samples import EVENTS, ORDERS

from tidemark.cassandra.bulk.batch_errors import Retries
from tidemark.cassandra.cql_types import CqlType
from tidemark.cassandra.scan import columns
from tidemark.cassandra.scan import table_scan as module
from tidemark.cassandra.scan.clustering import CqlOperator, Restriction
from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.partition_keys import KeyGroup, PartitionKey
from tidemark.cassandra.scan.raw_pages import Page
from tidemark.cassandra.scan.table_scan import (
    Extract,
    Part,
    ScanFailed,
    ScanSettings,
    scan,
    scan_pages,
)
from tidemark.cassandra.token_ranges import TokenRange, cut_ring

pytestmark = pytest.mark.unit

AT_ONCE = Retries(first_pause=0)
ROW_BYTES = 100
ALL = Selected.of(EVENTS)


@dataclass
class FakeSession:
    """A table of numbers, each its own token; answers at once, in the thread that asks."""

    numbers: Sequence[int]
    fails: Callable[[Any, int], Exception | None] = lambda values, attempt: None
    """What goes wrong when these values are asked for the so-manieth time."""
    row_bytes: int = ROW_BYTES
    answers_twice: bool = False
    asked: list[int] = field(default_factory=list)
    """How many rows each time."""
    attempts: dict[Any, int] = field(default_factory=dict)
    queries: set[str] = field(default_factory=set)
    under_way: int = 0
    columns: int = 2

    def prepare(self, query: str, consistency: int) -> str:
        self.queries.add(query)
        return query

    def ask(self, statement: str, values: Any, rows: int, page: bytes | None, answered: Any) -> None:
        self.asked.append(rows)
        place = (values, page)
        self.attempts[place] = self.attempts.get(place, 0) + 1
        if error := self.fails(values, self.attempts[place]):
            answered(None, error)
            return
        if "token" in statement:
            found = [n for n in self.numbers if values[0] < n <= values[1]]
        elif " IN ?" in statement:
            found = []
        else:
            found = [n for n in self.numbers if n == values[0]]
        start = int(page or 0)
        numbers = (n.to_bytes(4, "big", signed=True) for n in found[start : start + rows])
        cells = [(number, b"x")[: self.columns] for number in numbers]
        # As Cassandra does it: there may be more whenever the page is full.
        more = str(start + rows).encode() if len(cells) == rows else None
        for _ in range(2 if self.answers_twice else 1):
            answered(Page(cells, self.row_bytes * len(cells), more), None)


def read(
    session: FakeSession,
    parts: Sequence[Part],
    selected: Selected = ALL,
    restrictions: Sequence[Restriction] = (),
    **settings: Any,
) -> list[int]:
    session.columns = len(selected.columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "raw_session", lambda _: session)
        batches = scan(None, selected, parts, ScanSettings(retries=AT_ONCE, **settings), restrictions)
        return [n for batch in batches for n in batch.column(0).to_pylist()]


@given(
    st.lists(st.integers(-(2**31), 2**31 - 1), unique=True),
    st.integers(1, 20),
    st.integers(1, 7),
    st.integers(1, 5),
)
def test_every_row_comes_once(numbers: list[int], pieces: int, fetch_rows: int, in_flight: int) -> None:
    found = read(FakeSession(numbers), cut_ring([], pieces), fetch_rows=fetch_rows, in_flight=in_flight)
    assert sorted(found) == sorted(numbers)


@pytest.mark.parametrize("rows", [0, 1, 9, 10, 11, 20])
def test_around_the_size_of_a_page_every_row_comes_once(rows: int) -> None:
    assert read(FakeSession(range(rows)), cut_ring([], 1), fetch_rows=10) == list(range(rows))


def test_rows_come_once_even_if_the_driver_answers_twice() -> None:
    found = read(FakeSession(range(100), answers_twice=True), cut_ring([], 3), fetch_rows=10)
    assert sorted(found) == list(range(100))


def test_single_partitions_are_read_by_their_key() -> None:
    session = FakeSession(range(100))
    assert read(session, [PartitionKey((7,)), PartitionKey((200,)), PartitionKey((9,))]) == [7, 9]
    assert session.queries == {"SELECT id, payload FROM shop.events WHERE id = ?"}


def test_ranges_are_read_by_token() -> None:
    session = FakeSession([])
    read(session, cut_ring([], 2))
    assert session.queries == {"SELECT id, payload FROM shop.events WHERE token(id) > ? AND token(id) <= ?"}


def test_restrictions_are_the_server_s_to_apply() -> None:
    """Item 25: Cassandra takes them for a partition as they are, and for a range with ALLOW FILTERING."""
    for parts, where in (
        ([PartitionKey((7,))], "id = ? AND number > ?"),
        (cut_ring([], 1), "token(id) > ? AND token(id) <= ? AND number > ? ALLOW FILTERING"),
    ):
        session = FakeSession(range(100))
        read(session, parts, restrictions=[Restriction("number", CqlOperator.GREATER, 5)])
        assert session.queries == {f"SELECT id, payload FROM shop.events WHERE {where}"}
        assert all(values[-1] == 5 for values, _ in session.attempts)


def test_a_key_may_go_on_with_clustering_columns() -> None:
    session = FakeSession([7])
    read(session, [PartitionKey(("ann", 2026, 7))], selected=Selected.of(ORDERS, ["year"]))
    assert session.queries == {"SELECT year FROM shop.orders WHERE customer = ? AND year = ? AND number = ?"}


def test_a_range_in_which_the_server_looks_for_too_long_is_cut_in_two() -> None:
    """Item 25: few rows may be found where many are looked at; a smaller page would not help."""
    session = FakeSession(
        range(100), lambda values, _: OperationTimedOut() if values[1] - values[0] > 30 else None
    )
    restrictions = [Restriction("number", CqlOperator.GREATER, 5)]
    found = read(session, [TokenRange(-1, 99)], restrictions=restrictions)
    assert sorted(found) == list(range(100))
    assert {values[1] - values[0] for values, _ in session.attempts} == {100, 50, 25}


def test_a_range_that_stays_too_slow_fails_by_name() -> None:
    session = FakeSession(range(100), lambda values, _: OperationTimedOut())
    with pytest.raises(ScanFailed) as failed:
        read(session, [TokenRange(0, 64)], restrictions=[Restriction("a", CqlOperator.EQUAL, 5)])
    assert failed.value.attempts == 6


def statements(part: Part, selected: Selected, extract: Extract) -> set[str]:
    """What is asked for one part."""
    session = FakeSession([])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "raw_session", lambda _: session)
        assert list(scan_pages(None, selected, [part], extract)) in ([], [Page([], 0, None)])
    return session.queries


def test_of_each_partition_the_first_rows_are_read() -> None:
    newest = Extract((Restriction("number", CqlOperator.LESS_OR_EQUAL, 5),), rows=1)
    assert statements(TokenRange(0, 9), Selected.of(ORDERS, ["year"]), newest) == {
        "SELECT year FROM shop.orders WHERE token(customer, year) > ? AND token(customer, year) <= ? "
        "AND number <= ? PER PARTITION LIMIT 1 ALLOW FILTERING"
    }


def test_partitions_that_share_all_but_the_last_column_are_read_by_one_statement() -> None:
    group = KeyGroup((b"ann",), (b"\0\0\7\xea", b"\0\0\7\xeb"))
    extract = Extract(rows=2, one_for_each=("customer", "year", "number"))
    assert statements(group, Selected.of(ORDERS, ["year"]), extract) == {
        "SELECT year FROM shop.orders WHERE customer = ? AND year IN ? "
        "GROUP BY customer, year, number PER PARTITION LIMIT 2"
    }


def test_what_is_not_selected_is_neither_read_nor_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Item 25."""
    decoded: list[str] = []
    decode = columns.decode

    def counting(cql_type: CqlType, *others: Any) -> Any:
        decoded.append(str(cql_type))
        return decode(cql_type, *others)

    monkeypatch.setattr(columns, "decode", counting)
    session = FakeSession(range(10))
    assert len(read(session, cut_ring([], 1), selected=Selected.of(ORDERS, ["year"]))) == 10
    assert decoded == ["int"]
    assert session.queries == {
        "SELECT year FROM shop.orders WHERE token(customer, year) > ? AND token(customer, year) <= ?"
    }


def test_no_parts_are_no_rows() -> None:
    assert read(FakeSession(range(100)), []) == []


def test_what_passes_is_asked_for_again_from_where_it_was() -> None:
    def fails(values: Any, attempt: int) -> Exception | None:
        return Unavailable("a node is away") if attempt < 4 else None

    assert read(FakeSession(range(30), fails), cut_ring([], 1), fetch_rows=10) == list(range(30))


def test_a_page_that_takes_too_long_is_asked_for_with_fewer_rows() -> None:
    session = FakeSession(range(30), lambda values, attempt: OperationTimedOut() if attempt == 1 else None)
    assert read(session, cut_ring([], 1), fetch_rows=16) == list(range(30))
    assert session.asked[:2] == [16, 8]


@pytest.mark.parametrize(
    "error", [Unavailable("away"), OperationTimedOut(), ReadFailure("too many tombstones")]
)
def test_a_part_that_does_not_come_fails_the_scan_by_name(error: Exception) -> None:
    bad = TokenRange(0, 50)
    session = FakeSession(range(100), lambda values, _: error if values == (0, 50) else None)
    with pytest.raises(ScanFailed) as failed:
        read(session, [TokenRange(-50, 0), bad, TokenRange(50, 100)])
    assert (failed.value.table, failed.value.part, failed.value.attempts) == ("shop.events", str(bad), 6)


def test_what_cannot_pass_is_not_asked_for_again() -> None:
    session = FakeSession([], lambda values, _: InvalidRequest("no such column"))
    with pytest.raises(ScanFailed, match="at the first attempt"):
        read(session, cut_ring([], 1))
    assert len(session.asked) == 1


def test_nothing_is_asked_for_before_it_is_needed() -> None:
    session = FakeSession(range(1000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "raw_session", lambda _: session)
        patch.setattr(module, "BATCH_ROWS", 10)
        batches = scan(None, Selected.of(EVENTS), cut_ring([], 1), ScanSettings(fetch_rows=10))
        next(batches)
    assert len(session.asked) == 2


def test_large_rows_come_few_at_a_time() -> None:
    session = FakeSession(range(2000), row_bytes=module.PAGE_BYTES // 7)
    assert len(read(session, cut_ring([], 1))) == 2000
    assert session.asked[:2] == [module.FIRST_ROWS, 7]


def test_small_rows_come_as_many_as_allowed() -> None:
    session = FakeSession(range(2000), row_bytes=10)
    read(session, cut_ring([], 1), fetch_rows=600)
    assert session.asked[:2] == [module.FIRST_ROWS, 600]


def test_small_pages_are_merged_into_large_batches() -> None:
    session = FakeSession(range(100))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "raw_session", lambda _: session)
        batches = list(scan(None, Selected.of(EVENTS), cut_ring([], 50), ScanSettings(fetch_rows=3)))
    assert [batch.num_rows for batch in batches] == [100]


def test_a_failure_survives_the_way_from_a_task() -> None:
    error = ScanFailed("shop.events", "tokens (0, 5]", 6, "OperationTimedOut")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
