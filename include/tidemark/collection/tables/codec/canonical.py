"""Restores the canonical bytes of stored cells: elements of sets and entries of maps in the order of their
bytes.

Rows have them in this order, so that equal values have equal bytes. Cassandra stores them in the order of
their type, in which −1 comes before 1; inside maps it does so at every depth. Pure.
"""

from collections.abc import Callable, Iterator, Sequence
from struct import Struct

from tidemark.cassandra.cells import NULL, encoded_list, unsigned_vint
from tidemark.cassandra.cql_types import CqlKind, CqlType
from tidemark.cassandra.driver import uvint_unpack

Canonical = Callable[[bytes], bytes]

_length = Struct(">i").pack
_read_length = Struct(">i").unpack_from


def canonical_of(cql_type: CqlType) -> Canonical | None:
    """The function for the cells of a type; None where they are always canonical."""
    inside = [canonical_of(element) for element in cql_type.elements]
    match cql_type.kind:
        case CqlKind.SET:
            return _set_of(inside[0] or _same)
        case CqlKind.MAP:
            return _map_of(inside[0] or _same, inside[1] or _same)
    if not any(inside):
        return None
    each = [one or _same for one in inside]
    match cql_type.kind:
        case CqlKind.LIST:
            return _list_of(each[0])
        case CqlKind.VECTOR:
            return _vector_of(each[0])
    return _tuple_of(each)


def _same(cell: bytes) -> bytes:
    return cell


def _list_of(element: Canonical) -> Canonical:
    return lambda cell: encoded_list([element(one) for one in _parts(cell, 4) if one is not None])


def _set_of(element: Canonical) -> Canonical:
    return lambda cell: encoded_list(sorted(element(one) for one in _parts(cell, 4) if one is not None))


def _map_of(key: Canonical, value: Canonical) -> Canonical:
    def restore(cell: bytes) -> bytes:
        parts = [one for one in _parts(cell, 4) if one is not None]
        pairs = sorted(zip(map(key, parts[::2]), map(value, parts[1::2]), strict=True))
        # As a list of keys and values in turn, but counted in pairs.
        return _length(len(pairs)) + encoded_list([one for pair in pairs for one in pair])[4:]

    return restore


def _tuple_of(elements: Sequence[Canonical]) -> Canonical:
    def restore(cell: bytes) -> bytes:
        parts = zip(_parts(cell, 0), elements, strict=False)  # stored tuples may end early
        return b"".join([NULL if one is None else _with_length(each(one)) for one, each in parts])

    return restore


def _vector_of(element: Canonical) -> Canonical:
    """Only elements of varying width can have sets or maps inside."""

    def restore(cell: bytes) -> bytes:
        found = []
        while cell:
            length, width = uvint_unpack(cell)
            one = element(cell[width : width + length])
            found.append(unsigned_vint(len(one)) + one)
            cell = cell[width + length :]
        return b"".join(found)

    return restore


def _parts(cell: bytes, place: int) -> Iterator[bytes | None]:
    """The parts of a cell from a place on, each after its length; None for null."""
    while place < len(cell):
        (length,) = _read_length(cell, place)
        place += 4
        yield None if length < 0 else cell[place : place + length]
        place += max(length, 0)


def _with_length(cell: bytes) -> bytes:
    return _length(len(cell)) + cell
