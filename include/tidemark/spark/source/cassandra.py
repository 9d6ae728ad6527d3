"""Cassandra as a data source of Spark: ``read``, ``write`` and ``writeStream`` with the format ``cassandra``.

``register_cassandra`` makes the format known to a session. A connection given there is pickled with the
source; it appears in no option, plan or page.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from pyspark.sql.datasource import DataSource  # noqa: TID253  (it is its class)

from tidemark.cassandra.bulk.statements import DeleteStatement, InsertOptions, InsertStatement, RowStatement
from tidemark.cassandra.cql_types import arrow_type
from tidemark.cassandra.scan.cell_facts import CellFact, Fact, facts_of
from tidemark.cassandra.scan.columns import Selected, TypeMismatch
from tidemark.cassandra.session import connect
from tidemark.cassandra.table import Table
from tidemark.connections import CassandraConnection
from tidemark.spark.session_facts import core_count, is_connect
from tidemark.spark.source import own_scans
from tidemark.spark.source.errors import CompleteModeRefused, OverwriteRefused, SchemaRefused
from tidemark.spark.source.options import PREFIX, CassandraOptions, RowOperation, names_connection
from tidemark.spark.source.python_workers import check_workers
from tidemark.spark.source.reader import CassandraReader, PushingReader
from tidemark.spark.source.writer import CassandraStreamWriter, CassandraWriter, RowWriting

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

NAME = "cassandra"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
REDACTED = "spark.sql.redaction.options.regex"
_registered: "WeakKeyDictionary[SparkSession, type[CassandraDataSource]]" = WeakKeyDictionary()
"""The class registered last, by session."""


class CassandraDataSource(DataSource):
    """A table of Cassandra; Spark makes one for every ``load`` and ``save``."""

    registered: ClassVar[CassandraConnection | None] = None
    """The connection that ``register_cassandra`` was given."""
    session_options: ClassVar[dict[str, str]] = {}
    """The settings ``spark.cassandra.*`` of the Spark session."""
    cores: ClassVar[int] = 2
    pushes: ClassVar[bool] = False
    """Whether filters are pushed down, which is safe only where every scan has its own plan."""

    def __init__(self, options: Any) -> None:
        # Not kept as they came: there may be a password among them.
        self._options = CassandraOptions.read(options, self.session_options)
        self._connection = _reached(self.registered, self._options, options)

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return NAME

    def schema(self) -> "StructType":
        """All columns of the table, or those that options name."""
        from pyspark.sql.pandas.types import from_arrow_schema

        table = self._table()
        return from_arrow_schema(Selected.of(table, self._options.columns, self._facts(table)).schema)

    def reader(self, schema: "StructType") -> CassandraReader:
        """A read of the columns of this schema."""
        table = self._table()
        with in_words_of_spark(table):
            selected = Selected.by_schema(table, to_arrow(schema), self._facts(table))
        reader = PushingReader if self.pushes else CassandraReader
        return reader(self._connection, self._options, selected, self.cores)

    def writer(self, schema: "StructType", overwrite: bool) -> CassandraWriter:
        """A write of DataFrames with this schema."""
        if overwrite:
            raise OverwriteRefused(f"{self._options.keyspace}.{self._options.table}")
        return CassandraWriter(RowWriting(self._connection, self._options, self._statement(schema)))

    def streamWriter(self, schema: "StructType", overwrite: bool) -> CassandraStreamWriter:
        """A write of the batches of a stream, each with this schema."""
        if overwrite:
            raise CompleteModeRefused(f"{self._options.keyspace}.{self._options.table}")
        return CassandraStreamWriter(RowWriting(self._connection, self._options, self._statement(schema)))

    def _statement(self, schema: "StructType") -> RowStatement:
        table, options, arrow = self._table(), self._options, to_arrow(schema)
        with in_words_of_spark(table):
            if options.operation is RowOperation.WRITE:
                return InsertStatement.of(table, arrow, InsertOptions(options.using, options.ignore_nulls))
            ranges = options.operation is RowOperation.DELETE_RANGES
            return DeleteStatement.of(table, arrow, options.using, ranges)

    def _facts(self, table: Table) -> list[CellFact]:
        lives = facts_of(table, Fact.TTL, self._options.ttl_of)
        return lives + facts_of(table, Fact.WRITE_TIME, self._options.writetime_of)

    def _table(self) -> Table:
        return self._options.described(connect(self._connection))


def register_cassandra(spark: "SparkSession", connection: CassandraConnection | None = None) -> None:
    """Make the format ``cassandra`` known to a Spark session.

    ``spark``: a classic session, or one of Spark Connect. Its settings ``spark.cassandra.*`` become the
    defaults of options; they are read now. The call also switches on
    ``spark.sql.python.filterPushdown.enabled``, adds passwords to what Spark redacts in plans, and installs
    an optimizer rule. On Spark Connect there is no such rule, so filters are not pushed down.

    ``connection``: where Cassandra is, with its credentials; options of a ``load`` or ``save`` that name a
    host or a login replace it as a whole. Without it, options or the session's settings say where Cassandra
    is, in the names of the Spark Cassandra connector.

    Registering again replaces the connection. Raises ``WorkersRefused`` where the Python that Spark starts
    for tasks cannot run this library.
    """
    if not is_connect(spark):
        check_workers()
    configured = {name: value for name, value in spark.conf.getAll.items() if name.startswith(PREFIX)}
    known = {
        "registered": connection,
        "session_options": configured,
        "cores": core_count(spark),
        "pushes": own_scans.install(spark, NAME),
    }
    registered = type(CassandraDataSource.__name__, (CassandraDataSource,), known)
    spark.dataSource.register(registered)
    _registered[spark] = registered
    # Spark refuses every read of a source that takes filters as long as this is off.
    spark.conf.set(PUSHDOWN, "true")
    redacted = spark.conf.get(REDACTED) or "(?i)url"
    if "password" not in redacted:
        spark.conf.set(REDACTED, f"{redacted}|password")


def opened(spark: "SparkSession", given: Mapping[str, str]) -> tuple[CassandraOptions, CassandraConnection]:
    """Options with the session's defaults, and their connection: the registered one, or the one they name."""
    source = _registered.get(spark, CassandraDataSource)
    options = CassandraOptions.read(given, source.session_options)
    return options, _reached(source.registered, options, given)


def _reached(
    registered: CassandraConnection | None, options: CassandraOptions, given: Mapping[str, str]
) -> CassandraConnection:
    return options.connection if registered is None or names_connection(given) else registered


def to_arrow(schema: "StructType") -> "pa.Schema":
    """The same schema in Arrow."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


@contextmanager
def in_words_of_spark(table: Table) -> Iterator[None]:
    """Raise ``SchemaRefused``, with Spark's names of types, for types that do not match."""
    from pyspark.sql.pandas.types import from_arrow_type

    try:
        yield
    except TypeMismatch as error:
        wanted, given = (
            from_arrow_type(each).simpleString() for each in (arrow_type(error.cql_type), error.given)
        )
        raise SchemaRefused(str(table), error.column, str(error.cql_type), wanted, given) from None
