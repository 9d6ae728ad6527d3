"""The schema of a journal keyspace: what is done about which one, and what is refused.

The numbers of steps and versions are kafka-journal's.
"""

from dataclasses import replace
from typing import Any

import pytest

from tidemark.cassandra.replication import default_copies
from tidemark.cassandra.schema.errors import GraceTooShort
from tidemark.journal_tables.errors import SchemaDiffers, SchemaVersionUnknown
from tidemark.journal_tables.schema.changes import (
    MIGRATIONS,
    SCHEMA_VERSION,
    AddColumn,
    CreateIndex,
    CreateKeyspace,
    CreateTable,
    DropTable,
)
from tidemark.journal_tables.schema.layout import TABLES, Found, Shape
from tidemark.journal_tables.schema.plan import SchemaStep, plan, refuse
from tidemark.pipeline.model import JournalDeclaration

pytestmark = pytest.mark.unit

FOUR = ("journal", "pointer2", "setting", "metajournal")
INDEXES = frozenset({("metajournal", "created_date"), ("metajournal", "expire_on")})
OLD = {
    "metadata": Shape({"id": "text", "topic": "text"}, ("topic",), ("id",)),
    "pointer": Shape({"topic": "text", "partition": "int"}, ("topic",), ("partition",)),
}
HOUR = 3600


def declared(**keys: Any) -> JournalDeclaration:
    return JournalDeclaration.model_validate({"name": "cassandra", "kind": "journal"} | keys, context={})


def given(*tables: str, version: str | None = None) -> Found:
    """A keyspace with these of today's tables."""
    indexed = INDEXES if "metajournal" in tables else frozenset()
    shapes = {table: TABLES[table] for table in tables}
    return Found(True, shapes, dict.fromkeys(tables, 864_000), indexed, version)


def changed(found: Found, table: str, **keys: Any) -> Found:
    shape = found.tables.get(table, Shape({}, ()))
    return replace(found, tables={**found.tables, table: replace(shape, **keys)})


def without(found: Found, table: str, *columns: str) -> Found:
    left = {name: kind for name, kind in found.tables[table].columns.items() if name not in columns}
    return changed(found, table, columns=left)


def planned(found: Found, **keys: Any) -> list[SchemaStep]:
    return list(plan(declared(**keys), found))


def check(found: Found, **keys: Any) -> None:
    refuse("orders", declared(**keys), found, plan(declared(**keys), found), HOUR)


ALL_NINE = [SchemaStep(change, index) for index, change in enumerate(MIGRATIONS)]
CREATE_FOUR = [
    SchemaStep(CreateTable("journal")),
    SchemaStep(CreateTable("pointer2")),
    SchemaStep(CreateTable("setting")),
    SchemaStep(CreateTable("metajournal")),
    SchemaStep(CreateIndex("created_date")),
    SchemaStep(CreateIndex("expire_on")),
]


# What is to be done


def test_there_are_nine_migrations_so_the_version_is_8():
    assert SCHEMA_VERSION == 8
    assert list(MIGRATIONS) == [
        AddColumn("journal", "headers"),
        AddColumn("journal", "version"),
        DropTable("metadata"),
        CreateTable("pointer2"),
        AddColumn("journal", "meta_record_id"),
        AddColumn("metajournal", "record_id"),
        DropTable("pointer"),
        DropTable("metadata"),
        DropTable("pointer"),
    ]


def test_a_fresh_keyspace_gets_its_tables_in_order_and_version_8_without_a_migration():
    assert planned(Found()) == [*CREATE_FOUR, SchemaStep(None, 8)]


def test_fresh_means_that_all_four_were_missing_whatever_else_is_there():
    assert planned(given("locks")) == [*CREATE_FOUR, SchemaStep(None, 8)]


def test_the_old_tables_beside_a_fresh_journal_are_left_alone():
    found = replace(given(), tables=OLD)
    assert planned(found) == [*CREATE_FOUR, SchemaStep(None, 8)]


@pytest.mark.parametrize("there", FOUR)
def test_with_one_of_the_four_a_keyspace_is_not_fresh_and_all_nine_are_run(there):
    created = [
        step
        for step in CREATE_FOUR
        if step.change != CreateTable(there)
        and not (there == "metajournal" and isinstance(step.change, CreateIndex))
    ]
    assert planned(given(there)) == [*created, *ALL_NINE]


def test_partial_tables_with_a_version_are_completed_and_not_migrated_again():
    found = given("journal", "setting", "metajournal", version="8")
    assert planned(found) == [SchemaStep(CreateTable("pointer2"))]


def test_all_tables_without_a_version_run_all_nine():
    assert planned(given(*FOUR)) == ALL_NINE


@pytest.mark.parametrize("value", ["", "abc", " 8", "8.0", "1_0", "٨"])
def test_a_version_that_is_no_number_is_as_if_missing(value):
    assert planned(given(*FOUR, version=value)) == ALL_NINE


def test_from_version_6_the_steps_7_and_8_are_left():
    assert planned(given(*FOUR, version="6")) == [
        SchemaStep(DropTable("metadata"), 7),
        SchemaStep(DropTable("pointer"), 8),
    ]


@pytest.mark.parametrize(("value", "left"), [("-1", 9), ("-7", 9), ("0", 8), ("+7", 1)])
def test_the_steps_after_the_stored_version_are_left(value, left):
    assert planned(given(*FOUR, version=value)) == ALL_NINE[9 - left :]


def test_at_the_known_version_nothing_is_left():
    assert planned(given(*FOUR, version="8")) == []


def test_an_index_that_got_lost_is_made_again():
    found = replace(given(*FOUR, version="8"), indexed=frozenset({("metajournal", "created_date")}))
    assert planned(found) == [SchemaStep(CreateIndex("expire_on"))]


def test_tables_count_under_their_declared_names():
    found = given(*FOUR, version="8")
    assert planned(found, tables={"journal": "events"}) == [SchemaStep(CreateTable("journal"))]


# What is sent for it


def test_every_statement_names_the_keyspace():
    journal = declared(keyspace="shop")
    changes = [CreateTable(table) for table in TABLES] + [CreateIndex("expire_on"), *MIGRATIONS]
    assert [c for c in changes if " shop." not in c.statement(journal)] == []


def test_a_table_is_created_with_the_declared_name():
    assert CreateTable("setting").statement(declared(keyspace="shop", tables={"setting": "options"})) == (
        "CREATE TABLE IF NOT EXISTS shop.options "
        "(key text, value text, timestamp timestamp, origin text, metadata text, PRIMARY KEY ((key)))"
    )


def test_an_index_is_named_after_table_and_column():
    assert CreateIndex("expire_on").statement(declared(keyspace="shop", tables={"metajournal": "heads"})) == (
        "CREATE INDEX IF NOT EXISTS heads_expire_on_idx ON shop.heads (expire_on)"
    )


def test_a_column_is_added_with_its_type():
    statement = AddColumn("journal", "headers").statement(declared())
    assert statement == "ALTER TABLE journal.journal ADD headers map<text, text>"


def test_i24_without_a_word_about_it_a_keyspace_gets_what_the_cluster_can_bear():
    three = CreateKeyspace(default_copies("dc1", 3)).statement(declared(keyspace="shop"))
    one = CreateKeyspace(default_copies("dc1", 1)).statement(declared(keyspace="shop"))
    assert three.endswith("replication = {'class': 'NetworkTopologyStrategy', 'dc1': 3}")
    assert one.endswith("replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")


def test_i24_what_is_declared_is_kept_however_large_the_cluster():
    journal = declared(keyspace="shop", replication={"replication_factor": 1})
    statement = CreateKeyspace(default_copies("dc1", 3)).statement(journal)
    assert statement.endswith("replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")


def test_a_keyspace_is_created_with_the_declared_replication():
    replication = {"class": "NetworkTopologyStrategy", "dc1": 3, "dc2": 2}
    assert CreateKeyspace().statement(declared(keyspace="shop", replication=replication)) == (
        "CREATE KEYSPACE IF NOT EXISTS shop WITH replication = "
        "{'class': 'NetworkTopologyStrategy', 'dc1': 3, 'dc2': 2}"
    )


# When a change counts as done


@pytest.mark.parametrize(
    ("columns", "done"),
    [({"headers": "map<text, text>"}, True), ({}, False), ({"headers": "text"}, False)],
    ids=["with its type", "without", "with another type"],
)
def test_a_column_is_added_when_it_is_there_with_its_type(columns, done):
    found = changed(given("journal"), "journal", columns=columns)
    assert AddColumn("journal", "headers").is_done(declared(), found) is done


def test_a_table_is_dropped_when_it_is_not_there():
    assert DropTable("pointer").is_done(declared(), given(*FOUR))
    assert not DropTable("pointer").is_done(declared(), replace(given(), tables=OLD))


def test_a_table_of_today_is_not_dropped_for_having_an_old_name():
    found = Found(True, {"metadata": TABLES["metajournal"]})
    assert DropTable("metadata").is_done(declared(tables={"metajournal": "metadata"}), found)


# What is refused


def test_a_newer_version_than_known_is_refused():
    with pytest.raises(SchemaVersionUnknown) as refused:
        check(given(*FOUR, version="9"))
    error = refused.value
    assert (error.pipeline, error.keyspace, error.found, error.known) == ("orders", "journal", "9", 8)


def test_a_version_beyond_every_int_is_newer_too():
    with pytest.raises(SchemaVersionUnknown):
        check(given(*FOUR, version="99999999999"))


@pytest.mark.parametrize("version", [None, "-1", "5", "8"])
def test_kafka_journals_own_tables_are_never_refused(version):
    check(given(*FOUR, "locks", version=version))


def test_a_missing_column_is_refused_when_no_migration_adds_it():
    with pytest.raises(SchemaDiffers) as refused:
        check(without(given(*FOUR, version="8"), "journal", "headers", "tags"))
    assert refused.value.differences == [
        "journal has no column tags set<text>",
        "journal has no column headers map<text, text>",
    ]


def test_a_missing_column_is_not_refused_when_a_migration_is_going_to_add_it():
    check(without(given(*FOUR, version="3"), "journal", "meta_record_id"))


def test_a_column_that_is_not_mentioned_may_be_missing():
    found = given(*FOUR, version="8")
    check(without(without(found, "metajournal", "metadata"), "setting", "metadata"))


def test_a_further_column_does_no_harm():
    found = given(*FOUR, version="8")
    columns = {**TABLES["journal"].columns, "notes": "text"}
    check(changed(found, "journal", columns=columns))


def test_another_primary_key_is_refused():
    found = changed(given(*FOUR, version="8"), "pointer2", partition=("topic",), clustering=("partition",))
    with pytest.raises(SchemaDiffers) as refused:
        check(found)
    assert refused.value.differences == [
        "pointer2 has the primary key ((topic), partition) instead of ((topic, partition))"
    ]


def test_a_column_of_another_type_is_refused():
    columns = {**TABLES["metajournal"].columns, "offset": "int"}
    with pytest.raises(SchemaDiffers) as refused:
        check(changed(given(*FOUR, version="8"), "metajournal", columns=columns))
    assert refused.value.differences == ["metajournal.offset is int instead of bigint"]


def test_a_foreign_table_with_an_old_name_is_refused_instead_of_dropped():
    found = changed(given(*FOUR, version="6"), "metadata", partition=("file",))
    with pytest.raises(SchemaDiffers, match=r"metadata has the primary key \(\(file\)\) instead of"):
        check(found)


def test_a_foreign_table_with_an_old_name_does_not_matter_when_nothing_would_be_dropped():
    check(changed(given(*FOUR, version="8"), "metadata", partition=("file",)))


@pytest.mark.parametrize("table", ["journal", "metajournal", "pointer2"])
def test_less_than_an_hour_of_grace_on_a_data_table_is_refused(table):
    found = given(*FOUR, version="8")
    with pytest.raises(GraceTooShort) as refused:
        check(replace(found, graces={**found.graces, table: HOUR - 1}))
    assert (refused.value.table, refused.value.seconds) == (table, HOUR - 1)


def test_an_hour_of_grace_is_enough():
    found = given(*FOUR, version="8")
    check(replace(found, graces=dict.fromkeys(FOUR, HOUR)))
