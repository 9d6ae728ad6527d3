"""Rows become exactly the cells that the driver would send, and stored cells become the same rows again."""

from struct import pack
from typing import Any

import pytest
from cassandra import cqltypes
from hypothesis import given
from hypothesis import strategies as st
from tests.support.collection_rows import ACCOUNTS, SEATS, place_of, row

from tidemark.cassandra.cells import UNSET
from tidemark.collection.model.row import CollectionRow, key_bytes
from tidemark.collection.tables.codec.cells import (
    StoredRows,
    change_cells,
    changes_cells,
    row_cells,
    version_cells,
)
from tidemark.collection.tables.errors import RowDamaged
from tidemark.collection.tables.statements import row_columns

pytestmark = pytest.mark.unit

TEXT, INT, BIGINT, BOOLEAN = (
    cqltypes.UTF8Type,
    cqltypes.Int32Type,
    cqltypes.LongType,
    cqltypes.BooleanType,
)
ANN = row(1_000_000, 7, ("ann",), ("Ann A.", None), partition=3)
GONE = row(1_000_000, 8, ("ann",), None)


def cell(kind: Any, value: Any) -> bytes:
    data = kind.to_binary(value, 5)
    return pack(">i", len(data)) + data


def encoded(one: CollectionRow) -> bytes:
    return row_cells(one, key_bytes(one.key))


def split(cells: bytes) -> list[bytes | None]:
    """The cells of a row without their lengths; None where nothing is written."""
    found: list[bytes | None] = []
    place = 0
    while place < len(cells):
        length = int.from_bytes(cells[place : place + 4], "big", signed=True)
        found.append(cells[place + 4 : place + 4 + length] if length >= 0 else None)
        place += 4 + max(length, 0)
    return found


def test_a_row_is_its_cells_in_the_order_of_the_statement() -> None:
    assert encoded(ANN) == b"".join(
        [
            cell(TEXT, "ann"),
            cell(BIGINT, 1_000_000),
            cell(BIGINT, 7),
            cell(BOOLEAN, False),
            cell(INT, 3),
            cell(BIGINT, 7),
            cell(TEXT, "accounts"),
            cell(TEXT, "Ann A."),
            UNSET,
            cell(BIGINT, 1_000_007),
        ]
    )


def test_a_row_of_a_key_that_is_gone_writes_no_value() -> None:
    cells = split(encoded(GONE))
    assert cells[row_columns(place_of(ACCOUNTS)).index("gone")] == b"\x01"
    assert cells[-3:-1] == [None, None]


def test_a_change_has_the_time_of_the_binding_as_its_write_time() -> None:
    key = key_bytes(ANN.key)
    assert change_cells(2, 1_000_000, key) == b"".join(
        [cell(INT, 2), cell(BIGINT, 1_000_000), cell(TEXT, "ann"), cell(BIGINT, 1_000_000)]
    )
    assert changes_cells(2, 1_000_000) == b"".join(
        [cell(BIGINT, 1_000_000), cell(INT, 2), cell(BIGINT, 1_000_000)]
    )


def test_a_version_is_deleted_at_its_own_write_time() -> None:
    assert version_cells(ANN.key, ANN.t, ANN.message_id, ANN.write_time) == b"".join(
        [cell(BIGINT, 1_000_007), cell(TEXT, "ann"), cell(BIGINT, 1_000_000), cell(BIGINT, 7)]
    )


@given(
    st.text(min_size=1),
    st.integers(-(2**31), 2**31 - 1),
    st.none() | st.tuples(st.none() | st.text()),
    st.integers(1, 2**62),
    st.integers(0, 2**62),
    st.integers(0, 2**31 - 1),
)
def test_a_row_that_was_stored_is_the_row_that_was_written(
    hall: str, seat: int, values: tuple[str | None] | None, t: int, message_id: int, partition: int
) -> None:
    one = row(t, message_id, (hall, seat), values, SEATS, partition, topic="Säle")
    assert StoredRows(place_of(SEATS)).decode(split(encoded(one))) == one


@pytest.mark.parametrize("column", ["gone", "topic", "partition", "offset"])
def test_a_row_that_lacks_what_every_row_has_is_named_as_damaged(column: str) -> None:
    columns = [*row_columns(place_of(ACCOUNTS)), "write time"]
    cells = [
        None if name == column else cell for name, cell in zip(columns, split(encoded(ANN)), strict=True)
    ]
    with pytest.raises(RowDamaged, match=f"collections.accounts: there is a row without .* `{column}`"):
        StoredRows(place_of(ACCOUNTS)).decode(cells)
