"""The schema of a journal keyspace on real Cassandra: from nothing, from old tables, beside others."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from socket import gethostname
from typing import Any
from uuid import uuid4

import pytest
from cassandra import OperationTimedOut
from cassandra.util import OrderedMapSerializedKey

from tidemark.cassandra.schema.errors import GraceTooShort, SchemaLockHeld, SchemaStepFailed
from tidemark.cassandra.schema.lock import schema_lock
from tidemark.cassandra.schema.steps import AS_DESIGNED, SchemaLimits
from tidemark.journal_tables.errors import SchemaDiffers, SchemaVersionUnknown, TablesLost
from tidemark.journal_tables.schema.create import Prepared, create_journal
from tidemark.pipeline.model import JournalDeclaration

pytestmark = pytest.mark.system

SPEC = {
    "journal": (
        "id text, topic text, segment bigint, seq_nr bigint, partition int, offset bigint, "
        "timestamp timestamp, origin text, version text, meta_record_id uuid, tags set<text>, metadata text, "
        "payload_type text, payload_txt text, payload_bin blob, headers map<text;text>",
        [["id", "topic", "segment"], ["seq_nr", "timestamp"]],
    ),
    "metajournal": (
        "id text, topic text, segment bigint, partition int, offset bigint, segment_size int, seq_nr bigint, "
        "delete_to bigint, created timestamp, created_date date, updated timestamp, expire_after duration, "
        "expire_on date, record_id uuid, origin text, properties map<text;text>, metadata text",
        [["topic", "segment"], ["id"]],
    ),
    "pointer2": (
        "topic text, partition int, offset bigint, created timestamp, updated timestamp",
        [["topic", "partition"], []],
    ),
    "setting": ("key text, value text, timestamp timestamp, origin text, metadata text", [["key"], []]),
    "locks": ("id text, expiry_ms bigint, timestamp timestamp, metadata text", [["id"], []]),
}
"""kafka-journal's tables, as its contract has them; ``;`` for a comma inside a type."""

OLD_TABLES = (
    "CREATE TABLE {}.journal (id text, topic text, segment bigint, seq_nr bigint, partition int, "
    "offset bigint, timestamp timestamp, origin text, tags set<text>, metadata text, payload_type text, "
    "payload_txt text, payload_bin blob, PRIMARY KEY ((id, topic, segment), seq_nr, timestamp))",
    "CREATE TABLE {}.metajournal (id text, topic text, segment bigint, partition int, offset bigint, "
    "segment_size int, seq_nr bigint, delete_to bigint, created timestamp, created_date date, "
    "updated timestamp, expire_after duration, expire_on date, origin text, properties map<text, text>, "
    "metadata text, PRIMARY KEY ((topic, segment), id))",
    "CREATE TABLE {}.metadata (id text, topic text, partition int, offset bigint, segment_size int, "
    "seq_nr bigint, delete_to bigint, created timestamp, updated timestamp, origin text, "
    "properties map<text, text>, metadata text, PRIMARY KEY ((topic), id))",
    "CREATE TABLE {}.pointer (topic text, partition int, offset bigint, created timestamp, "
    "updated timestamp, PRIMARY KEY ((topic), partition))",
)
ONE_COPY = "{'class': 'SimpleStrategy', 'replication_factor': 1}"


@dataclass
class Target:
    """A keyspace, and what tests do with it."""

    session: Any
    keyspace: str = field(default_factory=lambda: f"schema_{uuid4().hex[:8]}")
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def declared(self) -> JournalDeclaration:
        keys = {"name": "cassandra", "kind": "journal", "keyspace": self.keyspace} | self.settings
        return JournalDeclaration.model_validate(keys, context={})

    def create(self, limits: SchemaLimits = AS_DESIGNED, session: Any = None) -> Prepared:
        return create_journal(session or self.session, "orders", self.declared, limits)

    def execute(self, *statements: str) -> Any:
        """With the keyspace for ``{}``; what the last one answers."""
        return [self.session.execute(each.replace("{}", self.keyspace)) for each in statements][-1]

    def make_keyspace(self) -> None:
        self.execute(f"CREATE KEYSPACE {{}} WITH replication = {ONE_COPY}")

    def look(self, table: str, columns: str) -> list[Any]:
        query = f"SELECT {columns} FROM system_schema.{table} WHERE keyspace_name = %s"
        return list(self.session.execute(query, (self.keyspace,)))

    @property
    def tables(self) -> set[str]:
        return {row.table_name for row in self.look("tables", "table_name")}

    @property
    def replication(self) -> dict[str, str]:
        ((found,),) = self.look("keyspaces", "replication")
        assert isinstance(found, OrderedMapSerializedKey)
        return {**found, "class": found["class"].rsplit(".")[-1]}

    @property
    def version(self) -> str | None:
        row = self.execute("SELECT value FROM {}.setting WHERE key = 'schema-version'").one()
        return row.value if row else None

    @version.setter
    def version(self, value: str) -> None:
        self.execute(f"INSERT INTO {{}}.setting (key, value) VALUES ('schema-version', '{value}')")

    @property
    def locks(self) -> list[Any]:
        return list(self.execute("SELECT * FROM {}.locks"))

    def lock(self, seconds: int) -> None:
        """Hold the lock as another process, for so long."""
        self.execute(
            "INSERT INTO {}.locks (id, expiry_ms, timestamp, metadata) VALUES "
            "('kafka-journal', 60000, '2026-03-01T12:00:00Z', 'akka-7') "
            f"IF NOT EXISTS USING TTL {seconds}"
        )


@contextmanager
def given_target(services: Any, **settings: Any) -> Iterator[Target]:
    target = Target(services.session, settings=settings)
    try:
        yield target
    finally:
        target.execute("DROP KEYSPACE IF EXISTS {}")


@pytest.fixture
def target(services: Any) -> Iterator[Target]:
    """A keyspace that does not exist yet."""
    with given_target(services) as target:
        yield target


@dataclass(frozen=True)
class Made:
    target: Target
    prepared: Prepared
    setting: Any
    """The row of the version, as it was written."""


@pytest.fixture(scope="module")
def made(services: Any) -> Iterator[Made]:
    """A keyspace made from nothing, for all tests that leave its tables as they are."""
    with given_target(services) as target:
        prepared = target.create()
        yield Made(target, prepared, target.execute("SELECT * FROM {}.setting").one())


@pytest.fixture
def ready(made: Made) -> Iterator[Target]:
    target = made.target
    target.version = "8"
    yield target
    target.execute("DELETE FROM {}.locks WHERE id = 'kafka-journal' IF EXISTS")


@contextmanager
def statements_of(session: Any) -> Iterator[list[str]]:
    """Everything that is sent meanwhile."""
    sent: list[str] = []

    def note(future: Any) -> None:
        sent.append(future.query.query_string)

    session.add_request_init_listener(note)
    try:
        yield sent
    finally:
        session.remove_request_init_listener(note)


# From nothing


def test_from_nothing_all_is_created_in_order_without_a_migration(made):
    prepared = made.prepared
    names = [statement.split(" (")[0].split(".")[-1] for statement in prepared.statements[1:6]]
    assert (names, prepared.fresh, prepared.migrations) == (
        ["locks", "journal", "pointer2", "setting", "metajournal"],
        True,
        (),
    )


def test_from_nothing_the_version_is_8_and_names_this_host(made):
    row = made.setting
    assert (row.key, row.value, row.origin, row.metadata) == ("schema-version", "8", gethostname(), None)
    assert abs(row.timestamp.replace(tzinfo=UTC) - datetime.now(UTC)) < timedelta(minutes=1)


@pytest.mark.parametrize("table", SPEC)
def test_a_table_has_the_columns_and_the_primary_key_of_the_contract(made, table):
    rows = [row for row in made.target.look("columns", "*") if row.table_name == table]
    columns, keys = SPEC[table]
    wanted = dict(column.split(" ") for column in columns.replace(", ", ",").split(","))
    assert {row.column_name: row.type for row in rows} == {
        name: kind.replace(";", ", ") for name, kind in wanted.items()
    }
    by_position = sorted(rows, key=lambda row: row.position)
    kinds = ("partition_key", "clustering")
    assert [[row.column_name for row in by_position if row.kind == kind] for kind in kinds] == keys


def test_metajournal_has_its_two_indexes(made):
    indexes = made.target.look("indexes", "table_name, index_name, options")
    assert {(row.table_name, row.index_name, row.options["target"]) for row in indexes} == {
        ("metajournal", "metajournal_created_date_idx", "created_date"),
        ("metajournal", "metajournal_expire_on_idx", "expire_on"),
    }


def test_no_lock_is_left_behind(made):
    assert made.target.locks == []


@pytest.fixture(scope="module")
def declared_otherwise(services: Any) -> Iterator[Target]:
    replication = {"class": "NetworkTopologyStrategy", "datacenter1": 1}
    names = {table: f"my_{table}" for table in SPEC}
    with given_target(services, replication=replication, tables=names) as target:
        target.create()
        yield target


def test_tables_get_the_names_that_are_declared(declared_otherwise):
    assert declared_otherwise.tables == {f"my_{table}" for table in SPEC}


def test_tables_are_found_again_by_the_names_that_are_declared(declared_otherwise):
    assert declared_otherwise.create() == Prepared()


def test_a_keyspace_is_created_for_the_declared_data_centres(declared_otherwise):
    assert declared_otherwise.replication == {"class": "NetworkTopologyStrategy", "datacenter1": "1"}


def test_a_data_centre_that_is_not_there_is_refused_by_name(services):
    replication = {"class": "NetworkTopologyStrategy", "nowhere": 1}
    with given_target(services, replication=replication) as target:
        with pytest.raises(SchemaStepFailed, match=r"CREATE KEYSPACE .*nowhere"):
            target.create()
        assert target.look("keyspaces", "keyspace_name") == []


# Once more


def test_a_second_start_does_nothing_and_only_reads(ready):
    with statements_of(ready.session) as sent:
        assert ready.create() == Prepared()
    assert [statement for statement in sent if not statement.startswith("SELECT")] == []
    assert len(sent) == 5


# From what is there


def test_missing_tables_are_added_to_those_that_are_there(ready):
    ready.execute("DROP TABLE {}.pointer2", "DROP INDEX {}.metajournal_expire_on_idx")
    prepared = ready.create()
    assert [statement.split(" (")[0] for statement in prepared.statements] == [
        f"CREATE TABLE IF NOT EXISTS {ready.keyspace}.pointer2",
        f"CREATE INDEX IF NOT EXISTS metajournal_expire_on_idx ON {ready.keyspace}.metajournal",
    ]
    assert (prepared.migrations, prepared.fresh) == ((), False)


def test_tables_without_a_version_pass_all_nine_migrations_unchanged(ready):
    ready.execute("DELETE FROM {}.setting WHERE key = 'schema-version'")
    prepared = ready.create()
    assert (prepared.statements, prepared.migrations) == ((), tuple(range(9)))
    assert ready.version == "8"


@pytest.fixture(scope="module")
def migrated(services: Any) -> Iterator[Target]:
    """A keyspace of the oldest kind with an entity in it, after a start that declares three copies of it."""
    with given_target(services, replication={"replication_factor": 3}) as target:
        target.make_keyspace()
        target.execute(
            *OLD_TABLES,
            "INSERT INTO {}.journal (id, topic, segment, seq_nr, timestamp, offset, payload_txt) "
            "VALUES ('e1', 'orders', 0, 1, '2020-01-01T00:00:00Z', 41, '{\"a\":1}')",
            "INSERT INTO {}.metajournal (id, topic, segment, seq_nr, offset, created_date) "
            "VALUES ('e1', 'orders', 7, 1, 41, '2020-01-01')",
            "INSERT INTO {}.metadata (id, topic, seq_nr, offset) VALUES ('e1', 'orders', 1, 41)",
            "INSERT INTO {}.pointer (topic, partition, offset, created, updated) "
            "VALUES ('orders', 3, 41, '2020-01-01T00:00:00Z', '2020-01-02T00:00:00Z') "
            "USING TIMESTAMP 1577836800000000",
        )
        assert target.create().migrations == tuple(range(9))
        yield target


def test_an_old_keyspace_gets_todays_tables_and_loses_the_old_ones(migrated):
    assert migrated.tables == set(SPEC)
    assert migrated.version == "8"


def test_an_old_keyspace_keeps_the_replication_it_has(migrated):
    assert migrated.replication == {"class": "SimpleStrategy", "replication_factor": "1"}


def test_an_old_keyspace_gets_the_columns_of_the_migrations(migrated):
    columns = {
        (row.table_name, row.column_name) for row in migrated.look("columns", "table_name, column_name")
    }
    assert columns >= {
        ("journal", "headers"),
        ("journal", "version"),
        ("journal", "meta_record_id"),
        ("metajournal", "record_id"),
    }


def test_the_rows_of_an_old_keyspace_stay(migrated):
    row = migrated.execute("SELECT * FROM {}.journal").one()
    assert (row.id, row.seq_nr, row.offset, row.payload_txt, row.headers) == ("e1", 1, 41, '{"a":1}', None)


def test_the_heads_of_an_old_keyspace_stay(migrated):
    row = migrated.execute("SELECT * FROM {}.metajournal").one()
    assert (row.id, row.seq_nr, row.offset, row.created_date) == ("e1", 1, 41, date(2020, 1, 1))


def test_the_pointers_of_an_old_keyspace_move_with_the_time_they_were_written_at(migrated):
    row = migrated.execute(
        "SELECT topic, partition, offset, created, WRITETIME(offset) AS at FROM {}.pointer2"
    ).one()
    assert tuple(row) == ("orders", 3, 41, datetime(2020, 1, 1), 1577836800000000)


def test_heads_that_are_only_in_the_old_table_are_not_dropped(target):
    target.make_keyspace()
    target.execute(*OLD_TABLES, "INSERT INTO {}.metadata (id, topic, seq_nr) VALUES ('e1', 'orders', 1)")
    with pytest.raises(SchemaDiffers, match="heads are all in the old table metadata"):
        target.create()
    assert ("metadata" in target.tables, target.version) == (True, "1")


# What is refused


def test_a_newer_version_is_refused_and_kept(ready):
    ready.version = "9"
    with statements_of(ready.session) as sent, pytest.raises(SchemaVersionUnknown, match="schema version 9"):
        ready.create()
    assert [statement for statement in sent if not statement.startswith("SELECT")] == []


@pytest.fixture(scope="module")
def stuck(services: Any) -> Iterator[tuple[Target, SchemaStepFailed]]:
    """An old keyspace after a start that Cassandra refused a migration: what was dropped as one type cannot
    come back as another."""
    with given_target(services) as target:
        target.make_keyspace()
        target.execute(
            OLD_TABLES[0].replace("origin text", "origin text, meta_record_id int"),
            "ALTER TABLE {}.journal DROP meta_record_id",
        )
        with pytest.raises(SchemaStepFailed) as failed:
            target.create()
        yield target, failed.value


def test_a_migration_that_is_refused_is_named_with_its_cause(stuck):
    target, error = stuck
    assert error.step == f"migration 4, ALTER TABLE {target.keyspace}.journal ADD meta_record_id uuid"
    assert "incompatible with previously dropped column" in error.cause


def test_a_migration_that_is_refused_leaves_the_version_before_it(stuck):
    assert stuck[0].version == "3"


def test_a_start_that_fails_gives_the_lock_back(stuck):
    assert stuck[0].locks == []


def test_tables_that_are_not_kafka_journals_are_refused_before_anything_is_created(target):
    target.make_keyspace()
    target.execute("CREATE TABLE {}.journal (id text PRIMARY KEY, metadata text)")
    with pytest.raises(SchemaDiffers, match=r"journal has the primary key \(\(id\)\) instead of"):
        target.create()
    assert target.tables == {"journal"}


@pytest.fixture
def short_of_grace(ready: Target) -> Iterator[Target]:
    ready.execute("ALTER TABLE {}.pointer2 WITH gc_grace_seconds = 60")
    yield ready
    ready.execute("ALTER TABLE {}.pointer2 WITH gc_grace_seconds = 864000")


def test_tombstones_that_end_too_soon_are_refused(short_of_grace):
    with pytest.raises(GraceTooShort, match=r"pointer2 has gc_grace_seconds = 60"):
        short_of_grace.create()


def test_a_test_may_say_how_soon_tombstones_may_end(short_of_grace):
    assert short_of_grace.create(SchemaLimits(shortest_grace=60)) == Prepared()


# Beside others


def test_the_lock_is_a_row_that_ends_by_itself_after_a_minute(ready):
    with schema_lock(ready.session, "orders", ready.keyspace, "locks", 5):
        query = "SELECT id, expiry_ms, metadata, TTL(metadata) AS ttl FROM {}.locks"
        (row,) = ready.execute(query)
    assert tuple(row)[:3] == ("kafka-journal", 60_000, gethostname())
    assert 50 < row.ttl <= 60


def test_a_lock_of_another_is_waited_for(ready):
    ready.version = "7"
    ready.lock(seconds=1)
    with statements_of(ready.session) as sent:
        assert ready.create().migrations == (8,)
    assert (
        len([statement for statement in sent if statement.startswith("INSERT INTO") and "locks" in statement])
        > 1
    )


def test_a_lock_that_is_held_for_too_long_is_an_error_that_names_the_holder(ready):
    ready.version = "7"
    ready.lock(seconds=60)
    with pytest.raises(SchemaLockHeld, match=r"akka-7 has been changing .* since 2026-03-01 12:00:00 UTC"):
        ready.create(SchemaLimits(wait=0.3))
    assert ([row.metadata for row in ready.locks], ready.version) == (["akka-7"], "7")


class AnswersLost:
    """A session whose changes of the schema are done and never answered."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def execute_async(self, statement: str, *values: Any, **options: Any) -> Any:
        future = self._session.execute_async(statement, *values, **options)
        if not statement.startswith("SELECT"):
            future.result()
            raise OperationTimedOut({}, "127.0.0.1")
        return future


def test_changes_whose_answers_get_lost_are_not_made_again(target):
    prepared = target.create(session=AnswersLost(target.session))
    assert (len(prepared.statements), len(set(prepared.statements)), target.version) == (8, 8, "8")


def test_threads_that_start_at_once_all_find_the_keyspace_ready(target):
    count, results = 4, []
    together = threading.Barrier(count)

    def start() -> None:
        together.wait()
        results.append(target.create())

    threads = [threading.Thread(target=start) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result.fresh for result in results) == [False] * (count - 1) + [True]


STARTER = """
import sys
from tidemark.cassandra.session import connect, disconnect_all
from tidemark.connections import CassandraConnection
from tidemark.pipeline.model import JournalDeclaration
from tidemark.journal_tables.schema.create import create_journal

keys = {"name": "cassandra", "kind": "journal", "keyspace": sys.argv[2]}
session = connect(CassandraConnection(hosts=("127.0.0.1",), port=int(sys.argv[1])))
print("connected", flush=True)
sys.stdin.readline()
print(create_journal(session, "orders", JournalDeclaration.model_validate(keys, context={})).fresh)
disconnect_all()
"""


def test_processes_that_start_at_once_both_find_the_keyspace_ready(services, target):
    command = [sys.executable, "-c", STARTER, str(services.cassandra.port), target.keyspace]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    starters = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for starter in starters:
        assert starter.stdout.readline() == "connected\n"
    for starter in starters:
        starter.stdin.write("go\n")
        starter.stdin.flush()
    answers = [starter.communicate(timeout=90)[0].splitlines()[-1] for starter in starters]
    assert ([starter.returncode for starter in starters], sorted(answers)) == ([0, 0], ["False", "True"])
    assert (target.tables, target.version, target.locks) == (set(SPEC), "8", [])


@pytest.mark.parametrize("table", ["journal", "metajournal"])
def test_a_table_that_was_dropped_is_not_made_anew_beside_pointers_that_promise_its_rows(services, table):
    with given_target(services) as target:
        target.create()
        target.execute("INSERT INTO {}.pointer2 (topic, partition, offset) VALUES ('orders', 0, 7)")
        target.execute(f"DROP TABLE {{}}.{table}")
        with pytest.raises(TablesLost, match=f"{target.keyspace}.{table} is missing"):
            target.create()
        assert table not in target.tables
