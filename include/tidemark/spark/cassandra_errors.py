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
            f"{table}: mode overwrite would have to empty the table before anybody knows whether the new "
            "rows arrive. Nothing was written. Use mode append, which replaces rows with the same key; where "
            f"old rows must go, TRUNCATE {table} first."
        )
        self.table = table

    def __reduce__(self) -> tuple[type["OverwriteRefused"], tuple[str]]:
        return type(self), (self.table,)
