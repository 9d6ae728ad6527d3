"""Why rows are not written: what they lack, or what their table cannot hold."""

from tidemark.cassandra.errors import CassandraError
from tidemark.errors import did_you_mean, with_fields


@with_fields
class KeyMissing(CassandraError):
    """Rows without their whole primary key."""

    table: str
    missing: tuple[str, ...]
    key: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.table}: the primary key is ({', '.join(self.key)}), but the rows have no "
            f"{', '.join(self.missing)}. Nothing was written. Add what is missing."
        )


@with_fields
class ColumnMissing(CassandraError):
    """An option names a column that the rows do not have."""

    table: str
    column: str
    known: tuple[str, ...]

    def __str__(self) -> str:
        hint = did_you_mean(self.column, self.known, f"They have {', '.join(self.known)}.")
        return (
            f"{self.table}: `ttl` or `writetime` names the column `{self.column}`, which the rows do not "
            f"have. Nothing was written. {hint}"
        )


@with_fields
class RowRefused(CassandraError):
    """A value that its column cannot hold."""

    table: str
    column: str
    cql_type: str
    problem: str

    text = (
        "{table}: a row has {problem} for column `{column}` ({cql_type}). It was not written, nor the rows "
        "that came with it; others may be there already. Correct or drop such rows and write again: what is "
        "there already does no harm."
    )


@with_fields
class CountersRefused(CassandraError):
    """Rows for a table of counters."""

    table: str

    text = (
        "{table} is a table of counters, which are read here and never changed, because adding to one twice "
        "counts twice: use UPDATE … SET counter = counter + ? where it is counted. Nothing was written."
    )


@with_fields
class NotOfTheKey(CassandraError):
    """Rows to delete that have more than their key."""

    table: str
    others: tuple[str, ...]
    key: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.table}: a delete takes keys only, ({', '.join(self.key)}), but the rows have "
            f"{', '.join(self.others)} too. Nothing was deleted. Select the columns of the key; name a "
            "column of write times in `writetime`."
        )


class KeyNotWhole(KeyMissing):
    """Keys to delete of which a part is missing."""

    def __str__(self) -> str:
        return (
            f"{self.table}: the primary key is ({', '.join(self.key)}), but the rows have no "
            f"{', '.join(self.missing)}. Nothing was deleted. Add what is missing; to delete all rows "
            "whose key begins so, with at least the whole partition key and no gap, say `operation` = "
            "delete_ranges."
        )


@with_fields
class LifeOfNothing(CassandraError):
    """A delete with a time to live."""

    table: str

    text = (
        "{table}: `ttl` means nothing for a delete, which lasts. Nothing was deleted. Leave the option out."
    )
