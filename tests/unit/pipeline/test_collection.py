"""What a writer of kind ``collection`` declares, and every way it is refused."""

import subprocess
import sys
from datetime import timedelta

import pytest
from pydantic import TypeAdapter, ValidationError
from tests.support.collection_samples import given_columns
from tests.support.pipeline_files import ARCHIVE, HEAD, check

from tidemark.collection.model.envelopes.envelope import EnvelopeName
from tidemark.collection.model.key_format import KeyFormat
from tidemark.collection.model.schema import SYSTEM_COLUMNS, CollectionSchema
from tidemark.delivery.transforms.skip import Skip, SkippedAs
from tidemark.pipeline.files.refusals import explain
from tidemark.pipeline.journal import Consistency
from tidemark.pipeline.transforms import Transforms, TransformsOfRows
from tidemark.pipeline.writers import ConnectionType, NeededConnection
from tidemark.writers.collection.kind import CollectionDeclaration

pytestmark = pytest.mark.unit

ACCOUNTS = {
    "name": "accounts",
    "kind": "collection",
    "envelope": "upsert",
    "key": {"id": "text"},
    "columns": {"owner": "text", "balance": "decimal"},
}
SKIP = {"skip": {"field": "status", "operator": "==", "match": "open", "then": "delete"}}


def declared(**changes):
    settings = {**ACCOUNTS, **changes}
    return CollectionDeclaration.model_validate(
        {key: value for key, value in settings.items() if value != ...}
    )


def refused(**changes):
    """The texts of everything that is wrong with a declaration; ``...`` leaves a key out."""
    with pytest.raises(ValidationError) as refusal:
        declared(**changes)
    return [finding.text for finding in explain(refusal.value, CollectionDeclaration)]


def check_refused(said, **changes):
    (text,) = refused(**changes)
    assert said in text


def test_a_collection_with_what_it_needs():
    found = declared()
    assert found.schema_of_rows == CollectionSchema(
        given_columns(id="text"), given_columns(owner="text", balance="decimal"), 8
    )
    assert (found.keyspace, found.table_name, found.envelope) == (
        "collections",
        "accounts",
        EnvelopeName.UPSERT,
    )
    assert (found.keep, found.key_format, found.transforms) == (None, None, ())
    assert (found.consistency, found.replication) == (Consistency.LOCAL_QUORUM, None)
    assert list(found.connections()) == [NeededConnection(ConnectionType.CASSANDRA, "cassandra_default")]


def test_a_collection_with_everything():
    found = declared(
        keyspace="shop",
        table="account",
        envelope="debezium",
        key={"region": "varchar", "id": "bigint"},
        key_format="json",
        columns={"tags": "frozen<set<varchar>>"},
        transforms=[SKIP],
        shards=1_024,
        keep="90d",
        replication={"replication_factor": 1},
        consistency="ONE",
        connection="cassandra_shop",
        start="earliest",
    )
    assert found.schema_of_rows.key == given_columns(region="text", id="bigint")
    assert found.schema_of_rows.columns == given_columns(tags="set<text>")
    assert (found.key_format, found.keep, found.shards) == (KeyFormat.JSON, timedelta(days=90), 1_024)


OPERATIONS = {"envelope": "oplog", "key": ..., "columns": ...}


@pytest.mark.parametrize(
    "changes", [{}, {"envelope": "append", "key": ...}, {"transforms": [SKIP]}, OPERATIONS]
)
def test_a_declaration_survives_json_and_can_be_a_key(changes):
    found = declared(**changes)
    assert CollectionDeclaration.model_validate_json(found.model_dump_json()) == found
    assert CollectionDeclaration.model_validate(found.model_dump(mode="json")) == found
    assert found in {found}


def test_the_envelope_oplog_gives_the_columns():
    found = declared(**OPERATIONS)
    assert found.schema_of_rows.key == given_columns(type="text", id="text")
    assert found.schema_of_rows.columns == given_columns(
        event="text", timestamp="timestamp", parents="list<text>"
    )
    assert found.needed_formats == {"oplog"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"key": {"id": "text"}}, "which gives it: {type: text, id: text}. Remove it."),
        ({"columns": {"event": "text"}}, "which gives it: {event: text, timestamp: timestamp, parents: list"),
        ({"key_format": "json"}, "the key is `type/id`. Remove it."),
        ({"transforms": [SKIP]}, "which corrections are void depends on every operation of an object"),
    ],
)
def test_the_envelope_oplog_takes_nothing_else(changes, said):
    check_refused(said, **(OPERATIONS | changes))


def test_the_envelope_oplog_needs_operations(tmp_path):
    text = HEAD + "writers:\n  - {name: objects, kind: collection, envelope: oplog}\n"
    said = "is `oplog`, which needs messages in format `oplog`, but source.kafka.format is `kafka-journal`"
    check(tmp_path, text, 4, said)


def test_stored_settings_keep_the_order_of_columns():
    key = {"z": "text", "a": "int"}
    assert declared(key=key).model_dump(mode="json")["key"] == [["z", "text"], ["a", "int"]]


def test_the_same_type_in_other_words_gives_the_same_settings():
    assert declared(columns={"a": "varchar"}) == declared(columns={"a": " text "})


def test_a_collection_claims_both_of_its_tables():
    shown = [(claim.key, claim.shown) for claim in declared().claims()]
    assert shown == [("name", "collections.accounts"), ("name", "collections.accounts_changes")]
    identities = {claim.identity for claim in declared(table="account").claims()}
    assert identities == {
        ("cassandra", "cassandra_default", "collections", "account"),
        ("cassandra", "cassandra_default", "collections", "account_changes"),
    }


def test_the_key_of_an_append_is_the_id():
    assert declared(envelope="append", key=...).schema_of_rows.key == given_columns(message="bigint")
    assert declared(envelope="append", key={"entry": "bigint"}).key == (("entry", "bigint"),)


def test_a_collection_may_have_no_column_but_its_key():
    assert declared(columns={}).schema_of_rows.columns == ()


class TestNames:
    @pytest.mark.parametrize("name", ["orders-2", "Orders", "2orders", "order", "x" * 34])
    def test_a_name_that_no_table_can_have_is_refused_with_a_hint(self, name):
        (text,) = refused(name=name)
        if name == "order":
            assert text.startswith("`name` is `order`, a reserved word of CQL.")
        assert text.endswith("give the table another one with the key `table`.")

    def test_a_table_may_be_called_otherwise_than_the_writer(self):
        assert declared(name="orders-2", table="orders2").table_name == "orders2"

    @pytest.mark.parametrize("table", ["accounts_changes", "accounts_r2", "a_r10_changes", "x_r0"])
    def test_names_that_are_derived_are_reserved(self, table):
        check_refused("belong to the tables that are made for a collection", table=table)

    @pytest.mark.parametrize("table", ["accounts_r", "r2", "changes", "accounts_r2x"])
    def test_names_that_only_look_like_derived_ones_are_not(self, table):
        assert declared(table=table).table_name == table

    def test_a_table_leaves_room_for_what_is_named_after_it(self):
        assert declared(table="x" * 33).table_name == "x" * 33
        check_refused("is longer than 33 characters", table="x" * 34)

    @pytest.mark.parametrize("keyspace", ["tidemark", "system_x", "Shop", "select"])
    def test_a_keyspace_that_is_refused(self, keyspace):
        (text,) = refused(keyspace=keyspace)
        assert text.startswith("`keyspace` is ")

    @pytest.mark.parametrize("name", SYSTEM_COLUMNS)
    def test_a_column_of_the_table_itself_is_reserved(self, name):
        (text,) = refused(columns={name: "text"})
        assert text.startswith(
            f"`columns.{name}` is a column that every collection has itself (t, message_id"
        )
        assert text.endswith("Declare the name that the transform `rename` gives the field.")
        (text,) = refused(key={name: "text"})
        assert "The fields of a JSON key cannot be renamed" in text

    def test_the_reserved_names_are_those_of_the_table(self):
        assert SYSTEM_COLUMNS == ("t", "message_id", "gone", "topic", "partition", "offset")

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("ownerName", "which Cassandra would fold. Did you mean `ownername`? Declare the name that"),
            ("token", "a reserved word of CQL"),
            ("a-b", "which CQL cannot name"),
            ("x" * 49, "longer than 48 characters"),
        ],
    )
    def test_a_column_that_cql_cannot_name(self, name, said):
        check_refused(said, columns={name: "text"})

    def test_a_column_of_the_key_is_not_a_data_column(self):
        check_refused("`columns.id` is a column of the key too.", columns={"id": "text"})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"envelope": ...}, "`envelope` is missing"),
        (
            {"envelope": "upsrt"},
            "is `upsrt`, which is not one of upsert, append, debezium, oplog. Did you mean `upsert`",
        ),
        ({"key": ...}, "`key` names no column. Name at least one"),
        ({"key": {}}, "`key` names no column"),
        ({"key": "id"}, "`key` must be a mapping from columns to CQL types, not `id`"),
        ({"key": [["id", "text"], ["id", "int"]]}, "`key` has `id` twice"),
        ({"key": {"id": "decimal"}}, "`key.id` is `decimal`, which a key column cannot be"),
        ({"key": {"id": "txt"}}, "Did you mean `text`?"),
        ({"columns": ...}, "`columns` is missing"),
        ({"columns": {"a": "counter"}}, "A delivery may be repeated"),
        ({"columns": {"a": 5}}, "`columns.a` must be a CQL type, not `5`"),
        ({"columns": {"a": None}}, "`columns.a` must be a CQL type, not empty"),
        ({"columns": {"a": "address"}}, "User-defined types are refused"),
        ({"key_format": "xml"}, "which is not one of raw, json"),
        ({"key": {"a": "text", "b": "text"}, "key_format": "raw"}, "the key has 2. Remove it"),
        ({"envelope": "append", "key": {"id": "text"}}, "must be one column of type `bigint`"),
        (
            {"envelope": "append", "key": {"a": "bigint", "b": "bigint"}},
            "must be one column of type `bigint`",
        ),
        ({"envelope": "append", "key": ..., "key_format": "raw"}, "`key_format` is not taken with"),
        ({"envelope": "append", "key": ..., "transforms": [SKIP]}, "there is no row to delete"),
        ({"shards": 0}, "`shards` is `0`. It must be at least 1."),
        ({"shards": 1_025}, "`shards` is `1025`. It must be at most 1024."),
        ({"keep": 90}, "has no unit. Did you mean `90s`?"),
        ({"start": "latest"}, "one that begins in the middle is not the state of its topic"),
        ({"start": "recreated"}, "can be `recreated` for a journal only"),
        ({"consistency": "SERIAL"}, "which is not one of ONE"),
        ({"segment_size": 5}, "is an unknown key"),
    ],
)
def test_what_is_refused(changes, said):
    check_refused(said, **changes)


def test_a_type_that_yaml_has_cut_at_its_comma_is_explained():
    texts = refused(columns={"tags": "map<text", "int>": None})
    assert "a bracket is open. Put a type with commas in quotes" in texts[0]


def test_every_column_that_is_wrong_is_named():
    places = [text.split()[0] for text in refused(columns={"a": "strng", "offset": "int", "B": "text"})]
    assert places == ["`columns.a`", "`columns.offset`", "`columns.B`"]


def test_a_skip_may_delete_in_a_collection():
    (skip,) = declared(transforms=[SKIP]).transforms
    assert skip == Skip(field="status", operator="==", match="open", then=SkippedAs.DELETE)


@pytest.mark.parametrize("writer", [ARCHIVE + "    path: /data/archive\n", None])
def test_no_other_kind_takes_a_skip_that_deletes(tmp_path, writer):
    kafka = HEAD + "writers:\n  - name: copy\n    kind: kafka\n    topic: copies\n"
    file = (writer or kafka) + (
        "    transforms:\n      - skip: {field: a, operator: '==', match: 1, then: delete}\n"
    )
    said = (
        "`writers[0].transforms[0].skip.then` is `delete`, which only a writer of kind `collection` takes: "
        "it has rows that a message can delete, and this kind writes one message after the other. Remove "
        "the key to drop such messages."
    )
    check(tmp_path, file, 8, said)


def test_a_skip_that_drops_is_written_down_as_before():
    """Settings that are stored with writers have no such key."""
    plain = {"field": "a", "operator": "==", "match": 1}
    for settings in (plain, {**plain, "then": "drop"}):
        found = TypeAdapter(Transforms).validate_python([{"skip": settings}])
        assert TypeAdapter(TransformsOfRows).dump_python(found, mode="json") == [
            {"skip": {"namespaces": ".*", **plain}}
        ]


def test_a_declaration_imports_nothing_heavy():
    program = (
        "import sys; import tidemark.writers.collection.kind; "
        "print({'pyarrow', 'numpy', 'cassandra', 'confluent_kafka', 'kafka'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
