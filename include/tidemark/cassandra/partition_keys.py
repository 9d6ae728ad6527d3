"""Values of a DataFrame → values of partition keys, to read single partitions instead of a whole table.

Only of types where "equal" means the same partition. Floating point has two zeros and decimals have trailing
ones, each a partition of its own: those are not looked up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import product
from math import prod
from typing import Any
from uuid import UUID

from tidemark.cassandra.cql_types import CqlType, Kind

MOST_KEYS = 10_000
"""Partitions that are looked up one by one; for more, the table is read and filtered."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """One partition: the values of its key's columns, as the driver takes them."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return f"partition {self.values}"


class NoSuchKey(ValueError):
    """A value that no cell of the type can have."""


def _ascii(value: str) -> str:
    value.encode("ascii")
    return value


def _timeuuid(value: str) -> UUID:
    found = UUID(value)
    if found.version != 1:
        raise NoSuchKey(value)
    return found


def _milliseconds(value: datetime) -> int:
    moment = value if value.tzinfo else value.replace(tzinfo=UTC)
    whole, rest = divmod(moment - _EPOCH, timedelta(milliseconds=1))
    if rest:
        raise NoSuchKey(str(value))
    return whole


def _same(value: Any) -> Any:
    return value


_EXACT: dict[Kind, Callable[[Any], Any]] = {
    Kind.ASCII: _ascii,
    Kind.BIGINT: _same,
    Kind.BLOB: bytes,
    Kind.BOOLEAN: _same,
    Kind.DATE: _same,
    Kind.INT: _same,
    Kind.SMALLINT: _same,
    Kind.TEXT: _same,
    Kind.TIME: _same,
    Kind.TINYINT: _same,
    Kind.VARCHAR: _same,
}
"""A value that is equal names the partition, and the partition has no row that is not equal."""
_NEARLY: dict[Kind, Callable[[Any], Any]] = {
    Kind.INET: lambda value: str(ip_address(value)),
    Kind.TIMESTAMP: _milliseconds,
    Kind.TIMEUUID: _timeuuid,
    Kind.UUID: UUID,
}
"""The same value may be spelled in several ways, so the rows have to be filtered still."""


def is_exact(cql_type: CqlType) -> bool:
    """Whether rows of the partitions found need no further filter on this column."""
    return cql_type.kind in _EXACT


def key_values(cql_type: CqlType, values: Sequence[Any]) -> list[Any] | None:
    """Different values for the driver, without those that no cell can have; None where none are looked up."""
    convert = _EXACT.get(cql_type.kind) or _NEARLY.get(cql_type.kind)
    if convert is None:
        return None
    found = []
    for value in values:
        if value is None:
            continue
        try:
            found.append(convert(value))
        except ValueError:
            continue
    return list(dict.fromkeys(found))


def combine(key: Sequence[str], values: Mapping[str, list[Any]]) -> list[PartitionKey] | None:
    """All partitions with these values; None where a column has none given, or where there are too many."""
    if not all(name in values for name in key) or prod(len(values[name]) for name in key) > MOST_KEYS:
        return None
    return [PartitionKey(each) for each in product(*(values[name] for name in key))]
