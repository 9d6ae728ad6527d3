"""The schema of a table, read from the server: the driver's own metadata may be seconds old."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from cassandra.cluster import Session
from cassandra.metadata import protect_name

from tidemark.cassandra.cql_types import CqlKind, CqlType, NoPlaceInArrow, UserType, parse_type
from tidemark.cassandra.errors import CassandraError
from tidemark.errors import did_you_mean, with_fields


class Role(StrEnum):
    """The kind of a column, in the order of ``SELECT *``."""

    PARTITION_KEY = "partition_key"
    CLUSTERING = "clustering"
    """Part of the primary key that orders rows within a partition."""
    STATIC = "static"
    """One value for all rows of a partition."""
    REGULAR = "regular"


@with_fields
class UnknownTable(CassandraError):
    """There is no such table."""

    keyspace: str
    table: str
    hint: str

    text = "There is no table {keyspace}.{table}. {hint}"


@with_fields
class UnknownColumn(CassandraError):
    """A column that the table does not have."""

    table: str
    column: str
    known: Sequence[str]

    def __str__(self) -> str:
        hint = did_you_mean(self.column, self.known, f"It has {', '.join(self.known)}.")
        return f"{self.table} has no column `{self.column}`. {hint}"


@with_fields
class TypeRefused(CassandraError):
    """A column whose type has no place in a DataFrame."""

    table: str
    column: str
    type_name: str

    text = (
        "{table}: column `{column}` is a {type_name}, which cannot be read or written here. Leave it out: "
        "name the other columns in the option `columns`."
    )


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    type_name: str
    role: Role = Role.REGULAR
    is_descending: bool = False
    """Whether rows are stored in the descending order of this clustering column."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table, its columns in the order of ``SELECT *``."""

    keyspace: str
    name: str
    columns: tuple[Column, ...]
    user_types: tuple[UserType, ...] = ()
    """The user-defined types of the keyspace."""

    def __str__(self) -> str:
        return f"{self.keyspace}.{self.name}"

    @property
    def cql_name(self) -> str:
        """The quoted name for statements."""
        return f"{protect_name(self.keyspace)}.{protect_name(self.name)}"

    @property
    def partition_key(self) -> tuple[str, ...]:
        """The columns of the partition key, in their order."""
        return tuple(column.name for column in self.columns if column.role is Role.PARTITION_KEY)

    @property
    def clustering(self) -> tuple[str, ...]:
        """The clustering columns, in their order."""
        return tuple(column.name for column in self.columns if column.role is Role.CLUSTERING)

    @property
    def has_counters(self) -> bool:
        """Whether it is a table of counters, which has no other columns beside its key."""
        return any(column.type_name == CqlKind.COUNTER for column in self.columns)

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The columns of the whole key, in their order."""
        keys = (Role.PARTITION_KEY, Role.CLUSTERING)
        return tuple(column.name for column in self.columns if column.role in keys)

    def type_of(self, column: str) -> CqlType:
        """The type of a column. Raises ``UnknownColumn``, or ``TypeRefused`` for a type unknown here."""
        found = self.column(column)
        try:
            return parse_type(found.type_name, self.user_types)
        except NoPlaceInArrow:
            raise TypeRefused(str(self), column, found.type_name) from None

    def column(self, name: str) -> Column:
        """A column by name. Raises ``UnknownColumn``."""
        for found in self.columns:
            if found.name == name:
                return found
        raise UnknownColumn(str(self), name, [found.name for found in self.columns])


def read_table(session: Session, keyspace: str, table: str) -> Table:
    """A table or a materialized view, as it is now. Raises ``UnknownTable``."""
    found = find_table(session, keyspace, table)
    if found is None:
        raise UnknownTable(keyspace, table, _hint(session, keyspace, table))
    return found


def find_table(session: Session, keyspace: str, table: str) -> Table | None:
    """A table or a materialized view, as it is now; None where there is none."""
    found = session.execute(
        "SELECT column_name, type, kind, position, clustering_order FROM system_schema.columns "
        "WHERE keyspace_name = %s AND table_name = %s",
        (keyspace, table),
    ).all()
    if not found:
        return None
    order = list(Role)
    found.sort(key=lambda row: (order.index(Role(row.kind)), row.position, row.column_name))
    columns = tuple(
        Column(row.column_name, row.type, Role(row.kind), row.clustering_order == "desc") for row in found
    )
    return Table(keyspace, table, columns, _user_types(session, keyspace))


def quoted(names: Sequence[str]) -> str:
    """Column names, quoted for a statement and joined."""
    return ", ".join(map(protect_name, names))


def _user_types(session: Session, keyspace: str) -> tuple[UserType, ...]:
    query = "SELECT type_name, field_names, field_types FROM system_schema.types WHERE keyspace_name = %s"
    return tuple(
        UserType(row.type_name, tuple(zip(row.field_names or (), row.field_types or (), strict=True)))
        for row in session.execute(query, (keyspace,))
    )


def _hint(session: Session, keyspace: str, table: str) -> str:
    names = session.execute("SELECT keyspace_name FROM system_schema.keyspaces")
    keyspaces = [row.keyspace_name for row in names]
    if keyspace not in keyspaces:
        others = f"Keyspaces: {', '.join(sorted(keyspaces))}."
        return f"There is no keyspace `{keyspace}` either. {did_you_mean(keyspace, keyspaces, others)}"
    query = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
    tables = [row.table_name for row in session.execute(query, (keyspace,))]
    return did_you_mean(table, tables, f"Tables there: {', '.join(tables) or 'none'}.")
