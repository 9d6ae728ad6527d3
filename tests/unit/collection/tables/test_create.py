"""Which tables of a collection are created, and which existing ones are refused."""

from dataclasses import replace

import pytest
from tests.support.collection_rows import ACCOUNTS, place_of

from tidemark.cassandra.schema.errors import GraceTooShort
from tidemark.cassandra.table import Column, Role, Table
from tidemark.collection.tables.create import FoundTables, missing_tables, refuse
from tidemark.collection.tables.errors import TableDiffers

pytestmark = pytest.mark.unit

PLACE = place_of(ACCOUNTS)
HOUR = 3600


def found(*tables: Table, grace: int = 864_000) -> FoundTables:
    return FoundTables({table.name: table for table in tables}, {table.name: grace for table in tables})


def with_columns(table: Table, **types: str | None) -> Table:
    """The table with some columns of other types, without those of None, and with further ones."""
    left = {column.name: column for column in table.columns}
    for name, kind in types.items():
        if kind is None:
            del left[name]
        else:
            left[name] = replace(left.get(name, Column(name, kind)), type_name=kind)
    return replace(table, columns=tuple(left.values()))


def problems(table: Table) -> list[str]:
    with pytest.raises(TableDiffers) as refused:
        refuse(PLACE, found(table), HOUR)
    assert refused.value.table == str(table)
    return list(refused.value.differences)


def test_from_nothing_both_tables_are_created_the_changes_first() -> None:
    assert missing_tables(PLACE, FoundTables()) == [PLACE.changes, PLACE.rows]


def test_what_is_there_is_not_created_again() -> None:
    assert missing_tables(PLACE, found(PLACE.changes)) == [PLACE.rows]
    assert missing_tables(PLACE, found(PLACE.rows, PLACE.changes)) == []


def test_its_own_tables_are_not_refused() -> None:
    refuse(PLACE, found(PLACE.rows, PLACE.changes), HOUR)


def test_a_column_of_another_type_is_refused_by_name() -> None:
    assert problems(with_columns(PLACE.rows, balance="decimal")) == [
        "its column `balance` is decimal instead of int"
    ]


def test_a_missing_column_is_refused_by_name() -> None:
    assert problems(with_columns(PLACE.rows, owner=None)) == ["it has no column `owner` (text)"]


def test_a_further_column_is_refused_by_name() -> None:
    assert problems(with_columns(PLACE.rows, note="text")) == [
        "its column `note` (text) is not among the wanted ones"
    ]


def test_rows_in_ascending_order_are_refused_because_the_first_would_be_the_oldest() -> None:
    ascending = tuple(replace(column, is_descending=False) for column in PLACE.rows.columns)
    assert problems(replace(PLACE.rows, columns=ascending)) == [
        "its primary key is ((id), t, message_id) instead of ((id), t desc, message_id desc)"
    ]


def test_another_key_of_the_changes_is_refused() -> None:
    columns = (Column("shard", "int", Role.PARTITION_KEY), *PLACE.changes.columns[1:])
    moved = tuple(replace(one, role=Role.CLUSTERING) if one.name == "t" else one for one in columns)
    assert problems(replace(PLACE.changes, columns=moved)) == [
        "its primary key is ((shard), t, id) instead of ((shard, t), id)"
    ]


def test_the_error_says_what_was_not_done_and_what_to_do() -> None:
    with pytest.raises(TableDiffers, match=r"Nothing was changed or written.*give the writer another"):
        refuse(PLACE, found(with_columns(PLACE.rows, owner=None)), HOUR)


def test_deletes_that_could_be_forgotten_within_the_hour_are_refused() -> None:
    with pytest.raises(GraceTooShort) as refused:
        refuse(PLACE, found(PLACE.rows, grace=HOUR - 1), HOUR)
    assert (refused.value.table, refused.value.seconds) == ("accounts", HOUR - 1)
