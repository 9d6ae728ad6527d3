"""Metadata of cells as columns: write time and remaining time to live. And the token of a partition.

Only columns outside the primary key have them. A collection or user-defined type that is not frozen has a
cell for each element, so its metadata is a list.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from cassandra.metadata import protect_name

from tidemark.cassandra.cql_types import CqlKind, CqlType
from tidemark.cassandra.errors import FactRefused
from tidemark.cassandra.table import Role, Table

_MULTI_CELL = (CqlKind.LIST, CqlKind.MAP, CqlKind.SET, CqlKind.USER_TYPE)


class Fact(StrEnum):
    """A CQL function, and the suffix of its column's name.

    Attributes:
        TTL: Seconds left; null for a cell without a time to live.
        WRITE_TIME: In µs since 1970.
    """

    TTL = "ttl"
    WRITE_TIME = "writetime"


_TYPES = {Fact.TTL: CqlType(CqlKind.INT), Fact.WRITE_TIME: CqlType(CqlKind.BIGINT)}


@dataclass(frozen=True, slots=True)
class CellFact:
    """One fact about a column, read as a column of its own."""

    column: str
    fact: Fact
    cql_type: CqlType

    @property
    def name(self) -> str:
        """The name of its column."""
        return f"{self.column}_{self.fact}"

    @property
    def expression(self) -> str:
        """The expression for a SELECT."""
        return f"{self.fact}({protect_name(self.column)})"


@dataclass(frozen=True, slots=True)
class KeyToken:
    """The token of a partition, read as a column of its own: where the partition is on the ring.

    Attributes:
        key: The columns of the partition key.
    """

    key: tuple[str, ...]
    cql_type = CqlType(CqlKind.BIGINT)

    @property
    def name(self) -> str:
        """The name of its column: no column of a table is called like an expression."""
        return self.expression

    @property
    def expression(self) -> str:
        """The expression for a SELECT."""
        return f"token({', '.join(map(protect_name, self.key))})"


Computed = CellFact | KeyToken
"""What is computed for every row."""


def facts_of(table: Table, fact: Fact, columns: Sequence[str]) -> list[CellFact]:
    """This fact about each of these columns."""
    return [_fact_of(table, fact, column) for column in columns]


def _fact_of(table: Table, fact: Fact, column: str) -> CellFact:
    found = table.column(column)
    if found.role in (Role.PARTITION_KEY, Role.CLUSTERING):
        raise FactRefused(str(table), column, fact, "it is part of the primary key. Name other columns.")
    name = f"{column}_{fact}"
    if any(each.name == name for each in table.columns):
        raise FactRefused(
            str(table), column, fact, f"it would be called `{name}`, and the table has a column of that name."
        )
    cql_type = _TYPES[fact]
    is_frozen = found.type_name.startswith("frozen<")
    if not is_frozen and table.type_of(column).kind in _MULTI_CELL:
        cql_type = CqlType(CqlKind.LIST, (cql_type,))
    return CellFact(column, fact, cql_type)
