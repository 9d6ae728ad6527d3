"""Times to live and write times as columns of their own (item 25)."""

import pickle

import pyarrow as pa
import pytest

from tidemark.cassandra.errors import FactRefused
from tidemark.cassandra.scan.cell_facts import Fact, facts_of
from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.table import Column, Role, Table, UnknownColumn

pytestmark = pytest.mark.unit

TABLE = Table(
    "shop",
    "orders",
    (
        Column("id", "int", Role.PARTITION_KEY),
        Column("number", "int", Role.CLUSTERING),
        Column("Total", "decimal"),
        Column("tags", "set<text>"),
        Column("fixed", "frozen<set<text>>"),
        Column("note", "text"),
        Column("note_ttl", "int"),
    ),
)


def test_a_fact_is_read_beside_its_columns() -> None:
    facts = [*facts_of(TABLE, Fact.TTL, ["Total"]), *facts_of(TABLE, Fact.WRITE_TIME, ["Total", "fixed"])]
    selected = Selected.of(TABLE, ["id", "Total"], facts)
    assert selected.columns == ["id", "Total", "Total_ttl", "Total_writetime", "fixed_writetime"]
    assert selected.schema.field("Total_ttl").type == pa.int32()
    assert selected.schema.field("fixed_writetime").type == pa.int64()
    assert selected.expressions == ('id, "Total", ttl("Total"), writetime("Total"), writetime(fixed)')


def test_a_collection_has_a_fact_for_each_element() -> None:
    (fact,) = facts_of(TABLE, Fact.WRITE_TIME, ["tags"])
    assert Selected.of(TABLE, [], [fact]).schema == pa.schema(
        [("tags_writetime", pa.list_(pa.field("element", pa.int64())))]
    )


def test_a_schema_chooses_among_facts() -> None:
    facts = facts_of(TABLE, Fact.TTL, ["Total", "fixed"])
    schema = pa.schema([("fixed_ttl", pa.int32()), ("id", pa.int32())])
    assert Selected.by_schema(TABLE, schema, facts).expressions == "ttl(fixed), id"


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("id", "part of the primary key"),
        ("number", "part of the primary key"),
        ("note", "it would be called `note_ttl`, and the table has a column of that name"),
    ],
)
def test_what_has_no_such_fact_is_refused(column: str, said: str) -> None:
    with pytest.raises(FactRefused, match=said):
        facts_of(TABLE, Fact.TTL, [column])


def test_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnknownColumn, match="Did you mean `note`"):
        facts_of(TABLE, Fact.WRITE_TIME, ["nte"])


def test_an_error_survives_the_way_from_a_task() -> None:
    error = FactRefused("t", "c", "ttl", "no.")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
