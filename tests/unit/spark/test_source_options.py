"""Options of the data source, as users of the Spark Cassandra connector know them."""

import pickle
from typing import Any

import pytest
from cassandra import ConsistencyLevel

from tidemark.cassandra.bulk.row_statement import Using
from tidemark.spark.source.options import CassandraOptions, OptionsRefused, SaveOperation, names_connection

pytestmark = pytest.mark.unit

TABLE = {"keyspace": "shop", "table": "orders"}
SECRET = "hunter2-marker-7f3a"


def options(session: dict[str, str] | None = None, /, **given: str) -> CassandraOptions:
    return CassandraOptions.read(TABLE | given, session)


def refusal(**given: str) -> str:
    with pytest.raises(OptionsRefused) as refused:
        options(None, **given)
    return str(refused.value)


def test_keyspace_and_table_are_enough() -> None:
    found = options()
    assert (found.keyspace, found.table, found.columns) == ("shop", "orders", None)
    assert (found.connection.hosts, found.connection.port) == (("127.0.0.1",), 9042)
    assert found.read_level == found.write_level == ConsistencyLevel.LOCAL_QUORUM


def test_columns_are_separated_by_commas() -> None:
    assert options(columns="id, Total ,").columns == ("id", "Total")


@pytest.mark.parametrize(
    ("name", "value", "field", "expected"),
    [
        ("spark.cassandra.connection.host", "a, b", "hosts", ("a", "b")),
        ("spark.cassandra.connection.port", "9142", "port", 9142),
        ("spark.cassandra.connection.localDC", "east", "local_dc", "east"),
        ("spark.cassandra.auth.username", "joe", "user", "joe"),
        ("spark.cassandra.input.split.sizeInMB", "64", "split_megabytes", 64),
        ("spark.cassandra.input.split.count", "12", "splits", 12),
        ("spark.cassandra.input.fetch.sizeInRows", "100", "fetch_rows", 100),
        ("spark.cassandra.input.consistency.level", "local_one", "read_level", ConsistencyLevel.LOCAL_ONE),
        ("spark.cassandra.output.consistency.level", "ALL", "write_level", ConsistencyLevel.ALL),
        ("spark.cassandra.output.batch.size.rows", "50", "batch_rows", 50),
        ("spark.cassandra.output.batch.size.bytes", "4096", "batch_bytes", 4096),
        ("spark.cassandra.output.concurrent.writes", "5", "writes_in_flight", 5),
        ("spark.cassandra.output.ignoreNulls", "false", "ignore_nulls", False),
        ("spark.cassandra.output.ttl", "60", "using", {Using.TTL: 60}),
        ("ttl", "life", "using", {Using.TTL: "life"}),
        ("writetime", "5", "using", {Using.TIMESTAMP: 5}),
        ("ttl_of", "total, Note", "ttl_of", ("total", "Note")),
        ("writetime_of", "total", "writetime_of", ("total",)),
        ("operation", "DELETE", "operation", SaveOperation.DELETE),
    ],
)
def test_an_option_by_the_connector_s_name(name: str, value: str, field: str, expected: Any) -> None:
    assert getattr(options(**{name: value}), field) == expected
    assert getattr(options(**{name.lower(): value}), field) == expected


def test_the_session_says_what_the_options_do_not() -> None:
    session = {"spark.cassandra.connection.host": "a", "spark.cassandra.connection.port": "1"}
    found = options(session, **{"spark.cassandra.connection.port": "2"})
    assert (found.hosts, found.port) == (("a",), 2)


def test_what_the_session_says_to_others_is_none_of_ours() -> None:
    assert options({"spark.cassandra.output.throughputMBPerSec": "5"}).keyspace == "shop"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"colums": "a"}, "There is no option `colums`. Did you mean `columns`?"),
        (
            {"spark.cassandra.input.fetch.size_in_rows": "5"},
            "Did you mean `spark.cassandra.input.fetch.sizeInRows`?",
        ),
        (
            {"zzz": "a"},
            "There is no option `zzz`. Options: checkpointLocation, columns, keyspace, operation, spark.",
        ),
        ({"operation": "remove"}, "`operation` is none of write, delete, delete_ranges."),
        ({"path": "x"}, "take no path"),
        ({"keyspace": ""}, "`keyspace` cannot be that"),
        ({"spark.cassandra.connection.port": "none"}, "`spark.cassandra.connection.port` cannot be that"),
        ({"spark.cassandra.input.split.count": "0"}, "`spark.cassandra.input.split.count` cannot be that"),
        ({"spark.cassandra.output.batch.size.rows": "70000"}, "less than or equal to 65535"),
        ({"spark.cassandra.input.consistency.level": "MOST"}, "is none of ONE, TWO, THREE"),
        ({"spark.cassandra.connection.ssl.enabled": "true"}, "needs `…ssl.trustStore.path`"),
        (
            {
                "spark.cassandra.connection.ssl.enabled": "true",
                "spark.cassandra.connection.ssl.trustStore.path": "/etc/ca.jks",
            },
            "is no PEM file",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_cannot_be_meant_is_refused_with_what_can(given: dict[str, str], said: str) -> None:
    assert said in refusal(**given)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(OptionsRefused) as refused:
        CassandraOptions.read({"tabel": "orders"})
    assert len(refused.value.problems) == 3


def test_a_refusal_never_repeats_a_value() -> None:
    assert SECRET not in refusal(**{"spark.cassandra.auth.passwort": SECRET})


def test_a_password_is_not_shown_but_goes_to_the_tasks() -> None:
    found = options(**{"spark.cassandra.auth.username": "joe", "spark.cassandra.auth.password": SECRET})
    assert SECRET not in f"{found!r} {found} {found.connection!r}"
    travelled = pickle.loads(pickle.dumps(found)).connection.password
    assert travelled.get_secret_value() == SECRET


def test_tls_has_its_files() -> None:
    prefix = "spark.cassandra.connection.ssl"
    given = {
        f"{prefix}.enabled": "true",
        f"{prefix}.trustStore.path": "ca.pem",
        f"{prefix}.keyStore.path": "me.pem",
    }
    connection = options(**given).connection
    assert (connection.ca_file, connection.certificate_file, connection.key_file) == (
        "ca.pem",
        "me.pem",
        "me.pem",
    )


def test_without_tls_its_files_are_not_used() -> None:
    assert not options(**{"spark.cassandra.connection.ssl.trustStore.path": "ca.pem"}).connection.uses_tls


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("spark.cassandra.connection.port", True),
        ("spark.cassandra.auth.username", True),
        ("spark.cassandra.input.split.count", False),
        ("table", False),
    ],
)
def test_which_options_say_where_cassandra_is(name: str, expected: bool) -> None:
    assert names_connection({name: "1"}) is expected
