"""Lists, sets, maps, tuples and vectors as CQL bytes.

The elements of sets and the entries of maps are in the order of their bytes, so that equal values have equal
bytes. Null is refused inside, except in the places of a tuple: Cassandra stores no null in a collection.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any, NamedTuple

from tidemark.cassandra.cells import NULL, unsigned_vint
from tidemark.collection.model.values.misfit import Encode, Misfit

_length = Struct(">i").pack


class KeyEncoders(NamedTuple):
    """The two ways in which JSON has the key of a map.

    Attributes:
        from_json: From a value in an array of pairs.
        from_text: From the name of an object's member; None where no text stands for such a key.
    """

    from_json: Encode
    from_text: Encode | None


def list_of(element: Encode) -> Encode:
    """``list``: a JSON array."""

    def encode(value: Any) -> bytes:
        return collection(_each(value, element))

    return encode


def set_of(element: Encode) -> Encode:
    """``set``: a JSON array in any order. An element that occurs twice is refused."""

    def encode(value: Any) -> bytes:
        cells = _each(value, element)
        if len(set(cells)) != len(cells):
            raise Misfit(_repeated(value, cells), "occurs twice, where each element of a set occurs once")
        return collection(sorted(cells))

    return encode


def map_of(keys: KeyEncoders, element: Encode) -> Encode:
    """``map``: a JSON object, or an array of pairs in any order. A key that occurs twice is refused."""

    def encode(value: Any) -> bytes:
        if type(value) is dict and keys.from_text is not None:
            from_text = keys.from_text
            names, cells = list(value), [from_text(name) for name in value]
            items = list(value.values())
        else:
            names, items = _pairs(value)
            cells = [keys.from_json(_not_null(name)) for name in names]
        entries = {cell: element(_not_null(item)) for cell, item in zip(cells, items, strict=True)}
        if len(entries) != len(cells):
            raise Misfit(_repeated(names, cells), "occurs twice, where each key of a map occurs once")
        return collection_of_pairs(sorted(entries.items()))

    return encode


def tuple_of(elements: Sequence[Encode]) -> Encode:
    """``tuple``: a JSON array with one value for each place, or null for none."""

    def encode(value: Any) -> bytes:
        if type(value) is not list or len(value) != len(elements):
            raise Misfit(value, f"is not a JSON array of {len(elements)}")
        return b"".join(
            [
                NULL if item is None else _with_length(element(item))
                for element, item in zip(elements, value, strict=True)
            ]
        )

    return encode


def vector_of(element: Encode, size: int, width: int | None) -> Encode:
    """``vector``: a JSON array of so many values; ``width`` is that of an element, None where it varies."""

    def encode(value: Any) -> bytes:
        if type(value) is not list or len(value) != size:
            raise Misfit(value, f"is not a JSON array of {size}")
        cells = _each(value, element)
        return b"".join(cells if width is not None else [unsigned_vint(len(one)) + one for one in cells])

    return encode


def collection(cells: Sequence[bytes]) -> bytes:
    """The bytes of a list or a set with these elements, in this order."""
    return _length(len(cells)) + b"".join(map(_with_length, cells))


def collection_of_pairs(pairs: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The bytes of a map with these entries, in this order."""
    parts = [_with_length(cell) for pair in pairs for cell in pair]
    return _length(len(pairs)) + b"".join(parts)


def _each(value: Any, element: Encode) -> list[bytes]:
    if type(value) is not list:
        raise Misfit(value, "is not a JSON array")
    return [element(_not_null(item)) for item in value]


def _pairs(value: Any) -> tuple[list[Any], list[Any]]:
    if type(value) is not list or any(type(pair) is not list or len(pair) != 2 for pair in value):
        raise Misfit(value, "is not a JSON object of such keys, nor an array of pairs")
    return [key for key, _ in value], [item for _, item in value]


def _not_null(item: Any) -> Any:
    if item is None:
        raise Misfit(item, "is no element: Cassandra stores no null in a collection")
    return item


def _repeated(values: Iterable[Any], cells: Iterable[bytes]) -> Any:
    """The first value whose bytes came before."""
    seen: set[bytes] = set()
    for value, cell in zip(values, cells, strict=True):
        if cell in seen:
            return value
        seen.add(cell)
    raise AssertionError("no value occurs twice")


def _with_length(cell: bytes) -> bytes:
    return _length(len(cell)) + cell
