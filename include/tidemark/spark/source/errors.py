"""What the data source ``cassandra`` refuses before anything is read or written."""

from tidemark.errors import TidemarkError, with_fields


class DataSourceError(TidemarkError):
    """The data source ``cassandra`` refuses a read or a write."""


@with_fields
class SchemaRefused(DataSourceError):
    """A column of a DataFrame whose type is not that of the table's."""

    table: str
    column: str
    cql_type: str
    wanted: str
    given: str

    text = (
        "{table}: column `{column}` is a {cql_type}, which is {wanted} in Spark, not {given}. Nothing was "
        "read or written. Let it be {wanted}, and cast it where you need another type."
    )


@with_fields
class OverwriteRefused(DataSourceError):
    """A write that would have to empty the table first."""

    table: str

    text = (
        "{table}: mode overwrite would have to empty the table before it is known whether the new rows "
        "arrive. Nothing was written. Use mode append, which replaces rows with the same key; where old rows "
        "must go, TRUNCATE {table} first."
    )


@with_fields
class CompleteModeRefused(DataSourceError):
    """A stream whose every batch would have to replace the whole table."""

    table: str

    text = (
        "{table}: output mode complete would have to empty the table before every batch. Nothing was "
        "written. Use mode append; for aggregations mode update and foreachBatch, which writes each batch by "
        "itself: rows with the same key are replaced."
    )


@with_fields
class BatchIncomplete(DataSourceError):
    """A batch of a stream of which some tasks' rows are not known to be written."""

    table: str
    batch: int
    problem: str

    text = (
        "{table}: batch {batch} of the stream is not committed, because {problem}. What was written stays; "
        "start the stream again from its checkpoint, and the batch is written again."
    )


@with_fields
class WorkersRefused(DataSourceError):
    """The Python that Spark starts for its tasks cannot run this library."""

    worker: str
    driver: str
    problem: str

    text = (
        "Spark starts `{worker}` for schema, planning and tasks, and {problem}: set PYSPARK_PYTHON={driver} "
        "(on a cluster, the path of such a Python on its nodes) before the Spark session is made."
    )


@with_fields
class JoinRefused(DataSourceError):
    """A join that cannot be meant."""

    table: str
    problem: str

    text = "{table}: no join by key: {problem} Nothing was read."
