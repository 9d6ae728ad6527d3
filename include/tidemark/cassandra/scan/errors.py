"""Why a scan of a table ended before its end."""

from tidemark.errors import TidemarkError


class ScanFailed(TidemarkError):
    """A part of a table that Cassandra did not give."""

    def __init__(self, table: str, part: str, attempts: int, cause: str) -> None:
        times = "at the first attempt" if attempts == 1 else f"in {attempts} attempts"
        super().__init__(
            f"{table}: {part} could not be read {times} ({cause}). Nothing of this read counts. See that "
            "Cassandra's nodes are up and not overloaded, then read again; if it timed out, with smaller "
            "pages (spark.cassandra.input.fetch.sizeInRows)."
        )
        self.table, self.part, self.attempts, self.cause = table, part, attempts, cause

    def __reduce__(self) -> tuple[type["ScanFailed"], tuple[str, str, int, str]]:
        return type(self), (self.table, self.part, self.attempts, self.cause)


class ValueRefused(TidemarkError):
    """A value that a DataFrame cannot hold."""

    def __init__(self, table: str, column: str, problem: str) -> None:
        super().__init__(
            f"{table}: column `{column}` has {problem}, which does not fit into its column of the DataFrame. "
            "Nothing of this read counts. Leave the column out (option `columns`); a decimal may be given "
            "another precision by a schema of your own."
        )
        self.table, self.column, self.problem = table, column, problem

    def __reduce__(self) -> tuple[type["ValueRefused"], tuple[str, str, str]]:
        return type(self), (self.table, self.column, self.problem)
