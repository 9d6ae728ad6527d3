"""What the data source ``cassandra`` refuses before anything is read or written."""

from tidemark.errors import TidemarkError


class SchemaRefused(TidemarkError):
    """A column of a DataFrame whose type is not that of the table's."""

    def __init__(self, table: str, column: str, cql_type: str, wanted: str, given: str) -> None:
        super().__init__(
            f"{table}: column `{column}` is a {cql_type}, which is {wanted} in Spark, not {given}. "
            f"Nothing was read or written. Let it be {wanted}, and cast it where you need another type."
        )
        self.table, self.column, self.cql_type = table, column, cql_type
        self.wanted, self.given = wanted, given

    def __reduce__(self) -> tuple[type["SchemaRefused"], tuple[str, str, str, str, str]]:
        return type(self), (self.table, self.column, self.cql_type, self.wanted, self.given)


class OverwriteRefused(TidemarkError):
    """A write that would have to empty the table first."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"{table}: mode overwrite would have to empty the table before it is known whether the new "
            "rows arrive. Nothing was written. Use mode append, which replaces rows with the same key; where "
            f"old rows must go, TRUNCATE {table} first."
        )
        self.table = table

    def __reduce__(self) -> tuple[type["OverwriteRefused"], tuple[str]]:
        return type(self), (self.table,)


class CompleteModeRefused(TidemarkError):
    """A stream whose every batch would have to replace the whole table."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"{table}: output mode complete would have to empty the table before every batch. Nothing was "
            "written. Use mode append; for aggregations mode update and foreachBatch, which writes each "
            "batch by itself: rows with the same key are replaced."
        )
        self.table = table

    def __reduce__(self) -> tuple[type["CompleteModeRefused"], tuple[str]]:
        return type(self), (self.table,)


class BatchIncomplete(TidemarkError):
    """A batch of a stream of which some tasks' rows are not known to be written."""

    def __init__(self, table: str, batch: int, problem: str) -> None:
        super().__init__(
            f"{table}: batch {batch} of the stream is not committed, because {problem}. What was written "
            "stays; start the stream again from its checkpoint, and the batch is written again."
        )
        self.table, self.batch, self.problem = table, batch, problem

    def __reduce__(self) -> tuple[type["BatchIncomplete"], tuple[str, int, str]]:
        return type(self), (self.table, self.batch, self.problem)


class WorkersRefused(TidemarkError):
    """The Python that Spark starts for its tasks cannot run this library."""

    def __init__(self, worker: str, driver: str, problem: str) -> None:
        super().__init__(
            f"Spark starts `{worker}` for schema, planning and tasks, and {problem}: set "
            f"PYSPARK_PYTHON={driver} (on a cluster, the path of such a Python on its nodes) before the "
            "Spark session is made."
        )
        self.worker, self.driver, self.problem = worker, driver, problem

    def __reduce__(self) -> tuple[type["WorkersRefused"], tuple[str, str, str]]:
        return type(self), (self.worker, self.driver, self.problem)
