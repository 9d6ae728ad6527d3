"""Cassandra as a data source of Spark, for ``read`` and ``write`` with the format ``cassandra``.

``register_cassandra`` makes it known to a session. A connection that is given there travels to the tasks by
itself and shows up in no option, plan or page.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource  # noqa: TID253  (it is its class)

from tidemark.cassandra.columns import Selected, TypeMismatch
from tidemark.cassandra.cql_types import arrow_type
from tidemark.cassandra.insert import Columns, Insert
from tidemark.cassandra.session import connect
from tidemark.cassandra.table import Table, read_table
from tidemark.connections import CassandraConnection
from tidemark.spark.cassandra_errors import OverwriteRefused, SchemaRefused
from tidemark.spark.cassandra_options import PREFIX, CassandraOptions, names_connection
from tidemark.spark.cassandra_reader import CassandraReader
from tidemark.spark.cassandra_writer import CassandraWriter

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

NAME = "cassandra"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
REDACTED = "spark.sql.redaction.options.regex"


class CassandraDataSource(DataSource):
    """A table of Cassandra."""

    registered: ClassVar[CassandraConnection | None] = None
    """What ``register_cassandra`` was given."""
    session_options: ClassVar[dict[str, str]] = {}
    """What the Spark session says about Cassandra."""
    cores: ClassVar[int] = 2

    def __init__(self, options: Any) -> None:
        # Not kept as they came: there may be a password among them.
        self._options = CassandraOptions.read(options, self.session_options)
        self._connection = self.registered
        if self._connection is None or names_connection(options):
            self._connection = self._options.connection

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return NAME

    def schema(self) -> "StructType":
        """All columns of the table, or those that the option names."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(Selected.of(self._table(), self._options.columns).schema)

    def reader(self, schema: "StructType") -> CassandraReader:
        """A read of the columns of this schema."""
        table = self._table()
        with _in_words_of_spark(table):
            selected = Selected.by_schema(table, _to_arrow(schema))
        return CassandraReader(self._reached, self._options, selected, self.cores)

    def writer(self, schema: "StructType", overwrite: bool) -> CassandraWriter:
        """A write of DataFrames with this schema."""
        table, options = self._table(), self._options
        if overwrite:
            raise OverwriteRefused(str(table))
        with _in_words_of_spark(table):
            insert = Insert.of(table, _to_arrow(schema), Columns(options.using, options.ignore_nulls))
        return CassandraWriter(self._reached, options, insert)

    @property
    def _reached(self) -> CassandraConnection:
        assert self._connection is not None
        return self._connection

    def _table(self) -> Table:
        return read_table(connect(self._reached), self._options.keyspace, self._options.table)


def register_cassandra(spark: "SparkSession", connection: CassandraConnection | None = None) -> None:
    """Make the format ``cassandra`` known to a session.

    Without a connection, options of each ``load`` and ``save`` say where Cassandra is, or the session's
    configuration, both in the names of the Spark Cassandra connector.
    """
    configured = {name: value for name, value in spark.conf.getAll.items() if name.startswith(PREFIX)}
    known = {
        "registered": connection,
        "session_options": configured,
        "cores": spark.sparkContext.defaultParallelism,
    }
    spark.dataSource.register(type(CassandraDataSource.__name__, (CassandraDataSource,), known))
    # Spark refuses every read of a source that takes filters as long as this is off.
    spark.conf.set(PUSHDOWN, "true")
    redacted = spark.conf.get(REDACTED) or "(?i)url"
    if "password" not in redacted:
        spark.conf.set(REDACTED, f"{redacted}|password")


def _to_arrow(schema: "StructType") -> "pa.Schema":
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


@contextmanager
def _in_words_of_spark(table: Table) -> Iterator[None]:
    """What does not go together, with the types that a user of Spark knows."""
    from pyspark.sql.pandas.types import from_arrow_type

    try:
        yield
    except TypeMismatch as error:
        wanted, given = (
            from_arrow_type(each).simpleString() for each in (arrow_type(error.cql_type), error.given)
        )
        raise SchemaRefused(str(table), error.column, str(error.cql_type), wanted, given) from None
