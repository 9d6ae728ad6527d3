"""The statements on a collection's tables, word for word."""

import pytest
from tests.support.collection_rows import ACCOUNTS, SEATS, place_of

from tidemark.cassandra.cql_types import parse_type
from tidemark.cassandra.schema.tables import create_table
from tidemark.collection.model.schema import CollectionSchema, Column
from tidemark.collection.tables import statements
from tidemark.collection.tables.errors import ColumnNameTaken
from tidemark.collection.tables.layout import stored_type

pytestmark = pytest.mark.unit

PLACE = place_of(ACCOUNTS)
TWO_KEYS = place_of(SEATS, name="seats")


def test_rows_are_a_partition_a_key_newest_first() -> None:
    assert create_table(PLACE.rows) == (
        "CREATE TABLE IF NOT EXISTS collections.accounts (id text, t bigint, message_id bigint, owner text, "
        "balance int, gone boolean, topic text, partition int, offset bigint, "
        "PRIMARY KEY ((id), t, message_id)) WITH CLUSTERING ORDER BY (t DESC, message_id DESC)"
    )


def test_changes_are_a_partition_a_shard_and_time() -> None:
    assert create_table(TWO_KEYS.changes) == (
        "CREATE TABLE IF NOT EXISTS collections.seats_changes (shard int, t bigint, hall text, seat int, "
        "PRIMARY KEY ((shard, t), hall, seat)) WITH CLUSTERING ORDER BY (hall ASC, seat ASC)"
    )


def test_a_row_is_written_with_the_key_first_and_its_write_time_last() -> None:
    assert statements.insert_row(TWO_KEYS) == (
        "INSERT INTO collections.seats (hall, seat, t, message_id, gone, partition, offset, topic, guest) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?"
    )


def test_a_change_is_written_with_the_time_of_its_binding() -> None:
    assert statements.insert_change(TWO_KEYS) == (
        "INSERT INTO collections.seats_changes (shard, t, hall, seat) VALUES (?, ?, ?, ?) USING TIMESTAMP ?"
    )


def test_the_row_of_one_message_is_deleted_by_its_whole_key() -> None:
    assert statements.delete_row(TWO_KEYS) == (
        "DELETE FROM collections.seats USING TIMESTAMP ? WHERE hall = ? AND seat = ? AND t = ? AND "
        "message_id = ?"
    )


def test_the_rows_before_one_are_deleted_as_one_range() -> None:
    assert statements.delete_older(PLACE) == (
        "DELETE FROM collections.accounts USING TIMESTAMP ? WHERE id = ? AND (t, message_id) < (?, ?)"
    )


def test_the_changes_of_a_shard_and_time_are_deleted_as_one_partition() -> None:
    assert statements.delete_changes(PLACE) == (
        "DELETE FROM collections.accounts_changes USING TIMESTAMP ? WHERE shard = ? AND t = ?"
    )


def test_a_key_is_read_as_of_a_time_as_one_row_of_one_partition() -> None:
    assert statements.select_row(PLACE) == (
        "SELECT gone, owner, balance FROM collections.accounts WHERE id = ? AND t <= ? "
        "ORDER BY t DESC LIMIT 1"
    )


def test_names_that_need_quotes_have_them() -> None:
    schema = CollectionSchema(
        (Column("Id", parse_type("text")),), (Column("order", parse_type("int")),), shards=1
    )
    assert statements.select_row(place_of(schema, name="Accounts")) == (
        'SELECT gone, "order" FROM collections."Accounts" WHERE "Id" = ? AND t <= ? ORDER BY t DESC LIMIT 1'
    )


@pytest.mark.parametrize(
    ("declared", "stored"),
    [
        ("varchar", "text"),
        ("decimal", "decimal"),
        ("set<int>", "frozen<set<int>>"),
        ("map<text, list<varchar>>", "frozen<map<text, frozen<list<text>>>>"),
        ("tuple<int, set<text>>", "frozen<tuple<int, frozen<set<text>>>>"),
        ("vector<float, 3>", "vector<float, 3>"),
        ("list<vector<float, 3>>", "frozen<list<vector<float, 3>>>"),
    ],
)
def test_what_holds_several_values_is_stored_frozen(declared: str, stored: str) -> None:
    assert stored_type(parse_type(declared)) == stored


def test_a_key_column_that_the_changes_have_themselves_is_refused() -> None:
    schema = CollectionSchema((Column("shard", parse_type("int")),), (), shards=1)
    with pytest.raises(ColumnNameTaken, match="cannot be called `shard`"):
        _ = place_of(schema).changes
