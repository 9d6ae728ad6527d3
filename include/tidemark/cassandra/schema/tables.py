"""Tables as they should be: the statement that creates one, and how an existing one differs from it. Pure."""

from collections.abc import Iterator

from cassandra.metadata import protect_name

from tidemark.cassandra.table import Column, Role, Table, quoted


def create_table(table: Table) -> str:
    """The statement that creates a table where there is none of its name."""
    columns = "".join(f"{_definition(column)}, " for column in table.columns)
    key = ", ".join([f"({quoted(table.partition_key)})", *map(protect_name, table.clustering)])
    order = ", ".join(f"{protect_name(each.name)} {_direction(each)}" for each in _clustering(table))
    options = f" WITH CLUSTERING ORDER BY ({order})" if order else ""
    return f"CREATE TABLE IF NOT EXISTS {table.cql_name} ({columns}PRIMARY KEY ({key})){options}"


def differences(wanted: Table, found: Table) -> Iterator[str]:
    """How an existing table differs from the wanted one, each difference as the end of a sentence about it.

    Types are compared as the server spells them.
    """
    if _key_of(found) != _key_of(wanted):
        yield f"its primary key is {_key_of(found)} instead of {_key_of(wanted)}"
    there = {column.name: column for column in found.columns}
    for column in wanted.columns:
        other = there.pop(column.name, None)
        if other is None:
            yield f"it has no column `{column.name}` ({column.type_name})"
        elif _type_of(other) != _type_of(column):
            yield f"its column `{column.name}` is {_type_of(other)} instead of {_type_of(column)}"
    for name, column in there.items():
        yield f"its column `{name}` ({column.type_name}) is not among the wanted ones"


def _definition(column: Column) -> str:
    return f"{protect_name(column.name)} {_type_of(column)}"


def _type_of(column: Column) -> str:
    return f"{column.type_name} static" if column.role is Role.STATIC else column.type_name


def _clustering(table: Table) -> list[Column]:
    return [column for column in table.columns if column.role is Role.CLUSTERING]


def _direction(column: Column) -> str:
    return "DESC" if column.is_descending else "ASC"


def _key_of(table: Table) -> str:
    """The primary key in CQL's notation, with the columns that are in descending order."""
    order = [f"{each.name}{' desc' if each.is_descending else ''}" for each in _clustering(table)]
    partition = f"({', '.join(table.partition_key)})"
    return f"({', '.join([partition, *order])})"
