"""Values of a DataFrame → values of partition keys, to read single partitions instead of a whole table.

Only for types where equal values are the same partition. Floating point has two zeros and decimals have
trailing ones, each a partition of its own: those are not looked up. The same values serve clustering columns.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import product
from math import prod
from typing import Any
from uuid import UUID

from tidemark.cassandra import cells
from tidemark.cassandra.cql_types import CqlKind, CqlType
from tidemark.cassandra.scan.raw_pages import Encoded

MOST_KEYS = 10_000
"""The most partitions that are looked up one by one; for more, the table is scanned."""
KEYS_AT_ONCE = 50
"""The most partitions that one statement reads."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """One partition: the values of its key's columns, in the driver's types.

    More values than the partition key has columns select rows by their first clustering columns.
    """

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return f"partition {self.values}"


@dataclass(frozen=True, slots=True)
class KeyGroup:
    """Partitions whose keys differ in the last column only, read by one statement. All in CQL's bytes.

    A statement for many small partitions takes a fraction of the time of one statement for each.
    """

    shared: tuple[bytes, ...]
    last: tuple[bytes, ...]

    @property
    def values(self) -> tuple[Encoded, ...]:
        """The values of the bind markers: ``=`` for the shared columns, ``IN`` for the last one."""
        return (*map(Encoded, self.shared), Encoded(cells.encoded_list(self.last)))

    def __str__(self) -> str:
        keys = ", ".join(" ".join(cell.hex() for cell in (*self.shared, last)) for last in self.last[:3])
        return f"{len(self.last)} partitions (keys in hex: {keys}{', …' if len(self.last) > 3 else ''})"


def key_groups(keys: Iterable[tuple[bytes, ...]], most: int = KEYS_AT_ONCE) -> Iterator[KeyGroup]:
    """Partition keys, in CQL's bytes, in groups for one statement each; each key once."""
    groups: dict[tuple[bytes, ...], dict[bytes, None]] = {}
    for key in keys:
        groups.setdefault(key[:-1], {})[key[-1]] = None
    for shared, lasts in groups.items():
        found = list(lasts)
        for start in range(0, len(found), most):
            yield KeyGroup(shared, tuple(found[start : start + most]))


def _ascii(value: str) -> str:
    value.encode("ascii")
    return value


def _timeuuid(value: str) -> UUID:
    found = UUID(value)
    if found.version != 1:
        raise ValueError(f"{value} is no timeuuid")
    return found


def whole_milliseconds(value: datetime) -> tuple[int, bool]:
    """Whole milliseconds since 1970, and whether there is a remainder."""
    moment = value if value.tzinfo else value.replace(tzinfo=UTC)
    whole, rest = divmod(moment - _EPOCH, timedelta(milliseconds=1))
    return whole, bool(rest)


def _milliseconds(value: datetime) -> int:
    whole, has_rest = whole_milliseconds(value)
    if has_rest:
        raise ValueError(f"{value} is no whole number of milliseconds")
    return whole


def _same(value: Any) -> Any:
    return value


_CONVERT: dict[CqlKind, Callable[[Any], Any]] = {
    CqlKind.ASCII: _ascii,
    CqlKind.BIGINT: _same,
    CqlKind.BLOB: bytes,
    CqlKind.BOOLEAN: _same,
    CqlKind.DATE: _same,
    CqlKind.INET: lambda value: str(ip_address(value)),
    CqlKind.INT: _same,
    CqlKind.SMALLINT: _same,
    CqlKind.TEXT: _same,
    CqlKind.TIME: _same,
    CqlKind.TIMESTAMP: _milliseconds,
    CqlKind.TIMEUUID: _timeuuid,
    CqlKind.TINYINT: _same,
    CqlKind.UUID: UUID,
    CqlKind.VARCHAR: _same,
}
_SPELLED = (CqlKind.INET, CqlKind.TIMEUUID, CqlKind.UUID)
"""Types whose values have several spellings, of which a column returns one."""


def is_key(cql_type: CqlType) -> bool:
    """Whether values of this type can be looked up."""
    return cql_type.kind in _CONVERT


def key_value(cql_type: CqlType, value: Any) -> Any:
    """A value in the driver's type, in any spelling; None where no cell can have it."""
    if value is None:
        return None
    try:
        return _CONVERT[cql_type.kind](value)
    except ValueError:
        return None


def key_values(cql_type: CqlType, values: Sequence[Any]) -> list[Any] | None:
    """Distinct values in the driver's type, without impossible ones; None for a type that is not looked up.

    A text counts only in the spelling that a read returns: for a DataFrame, others are not equal.
    """
    if not is_key(cql_type):
        return None
    found = []
    for value in values:
        converted = key_value(cql_type, value)
        if converted is not None and (cql_type.kind not in _SPELLED or str(converted) == value):
            found.append(converted)
    return list(dict.fromkeys(found))


def combine(key: Sequence[str], values: Mapping[str, list[Any]]) -> list[PartitionKey] | None:
    """All partitions with these values; None where a column has none, or where there are too many."""
    if not all(name in values for name in key) or prod(len(values[name]) for name in key) > MOST_KEYS:
        return None
    return [PartitionKey(each) for each in product(*(values[name] for name in key))]
