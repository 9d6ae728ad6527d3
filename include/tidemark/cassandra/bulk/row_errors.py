"""Why rows are not written: what they lack, or what their table cannot hold."""

from tidemark.cassandra.errors import CassandraError
from tidemark.errors import did_you_mean


class KeyMissing(CassandraError):
    """Rows without their whole primary key."""

    def __init__(self, table: str, missing: tuple[str, ...], key: tuple[str, ...]) -> None:
        super().__init__(
            f"{table}: the primary key is ({', '.join(key)}), but the rows have no {', '.join(missing)}. "
            "Nothing was written. Add what is missing."
        )
        self.table, self.missing, self.key = table, missing, key

    def __reduce__(self) -> tuple[type["KeyMissing"], tuple[str, tuple[str, ...], tuple[str, ...]]]:
        return type(self), (self.table, self.missing, self.key)


class ColumnMissing(CassandraError):
    """An option names a column that the rows do not have."""

    def __init__(self, table: str, column: str, known: tuple[str, ...]) -> None:
        hint = did_you_mean(column, known, f"They have {', '.join(known)}.")
        super().__init__(
            f"{table}: `ttl` or `writetime` names the column `{column}`, which the rows do not have. "
            f"Nothing was written. {hint}"
        )
        self.table, self.column, self.known = table, column, known

    def __reduce__(self) -> tuple[type["ColumnMissing"], tuple[str, str, tuple[str, ...]]]:
        return type(self), (self.table, self.column, self.known)


class RowRefused(CassandraError):
    """A value that its column cannot hold."""

    def __init__(self, table: str, column: str, cql_type: str, problem: str) -> None:
        super().__init__(
            f"{table}: a row has {problem} for column `{column}` ({cql_type}). It was not written, nor the "
            "rows that came with it; others may be there already. Correct or drop such rows and write again: "
            "what is there already does no harm."
        )
        self.table, self.column, self.cql_type, self.problem = table, column, cql_type, problem

    def __reduce__(self) -> tuple[type["RowRefused"], tuple[str, str, str, str]]:
        return type(self), (self.table, self.column, self.cql_type, self.problem)


class CountersRefused(CassandraError):
    """Rows for a table of counters."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"{table} is a table of counters, which are read here and never changed, because adding to one "
            "twice counts twice: use UPDATE … SET counter = counter + ? where it is counted. "
            "Nothing was written."
        )
        self.table = table

    def __reduce__(self) -> tuple[type["CountersRefused"], tuple[str]]:
        return type(self), (self.table,)


class NotOfTheKey(CassandraError):
    """Rows to delete that have more than their key."""

    def __init__(self, table: str, others: tuple[str, ...], key: tuple[str, ...]) -> None:
        super().__init__(
            f"{table}: a delete takes keys only, ({', '.join(key)}), but the rows have {', '.join(others)} "
            "too. Nothing was deleted. Select the columns of the key; name a column of write times in "
            "`writetime`."
        )
        self.table, self.others, self.key = table, others, key

    def __reduce__(self) -> tuple[type["NotOfTheKey"], tuple[str, tuple[str, ...], tuple[str, ...]]]:
        return type(self), (self.table, self.others, self.key)


class KeyNotWhole(CassandraError):
    """Keys to delete of which a part is missing."""

    def __init__(self, table: str, missing: tuple[str, ...], key: tuple[str, ...]) -> None:
        super().__init__(
            f"{table}: the primary key is ({', '.join(key)}), but the rows have no {', '.join(missing)}. "
            "Nothing was deleted. Add what is missing; to delete all rows whose key begins so, with at least "
            "the whole partition key and no gap, say `operation` = delete_ranges."
        )
        self.table, self.missing, self.key = table, missing, key

    def __reduce__(self) -> tuple[type["KeyNotWhole"], tuple[str, tuple[str, ...], tuple[str, ...]]]:
        return type(self), (self.table, self.missing, self.key)


class LifeOfNothing(CassandraError):
    """A delete with a time to live."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"{table}: `ttl` means nothing for a delete, which lasts. Nothing was deleted. Leave the option "
            "out."
        )
        self.table = table

    def __reduce__(self) -> tuple[type["LifeOfNothing"], tuple[str]]:
        return type(self), (self.table,)
