"""The key of a row, from the key of a message.

A JSON key has exactly the key columns. A missing field is refused, because messages without it would be one
row. So is a further one: messages that differ in that field alone are different to their producer, and would
be one row as well.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from tidemark.cassandra.type_tree import CqlKind
from tidemark.collection.model.key_format import KeyFormat
from tidemark.collection.model.no_row import NoRow
from tidemark.collection.model.schema import Column
from tidemark.collection.model.values.encoders import encoder_of, in_column, text_encoder_of
from tidemark.collection.model.values.misfit import Misfit, shown
from tidemark.journal.codec.json_text import parse_exactly

MOST_BYTES = 65_535
"""Cassandra's limit for a partition key."""

Key = tuple[bytes, ...]
ReadKey = Callable[[bytes | None], Key]
"""From a message key to the cells of the key columns; raises ``NoRow``."""
Unwrap = Callable[[Any], Any]


def key_reader(columns: Sequence[Column], key_format: KeyFormat, unwrap: Unwrap | None = None) -> ReadKey:
    """The function that reads message keys. ``unwrap`` takes the wrapper of an envelope off a JSON key."""
    read = _raw_reader(*columns) if key_format is KeyFormat.RAW else _json_reader(columns, unwrap)
    overhead = 3 * len(columns) if len(columns) > 1 else 0  # composite keys are stored with lengths
    is_single = not overhead

    def read_key(key: bytes | None) -> Key:
        if not key:
            what = "no key" if key is None else "an empty key"
            raise NoRow(f"it has {what}, and the key says which row it is about")
        cells = read(key)
        size = len(cells[0]) if is_single else sum(map(len, cells)) + overhead
        if size > MOST_BYTES:
            raise NoRow(f"its key takes {size} bytes, and Cassandra's limit is {MOST_BYTES}")
        if not size:
            raise NoRow(f"column `{columns[0].name}` of its key is empty, which no partition key can be")
        return cells

    return read_key


def _raw_reader(column: Column) -> Callable[[bytes], Key]:
    if column.type.kind is CqlKind.BLOB:
        return lambda key: (key,)
    encode = text_encoder_of(column.type)

    def read(key: bytes) -> Key:
        try:
            return (encode(key.decode()),)
        except UnicodeDecodeError as error:
            raise NoRow(f"its key is not UTF-8 at byte {error.start}") from None
        except Misfit as misfit:
            raise NoRow(f"its key does not fit {in_column(column, misfit)}") from None

    return read


def _json_reader(columns: Sequence[Column], unwrap: Unwrap | None) -> Callable[[bytes], Key]:
    encoders = tuple((column.name, encoder_of(column.type)) for column in columns)
    count = len(encoders)

    def read(key: bytes) -> Key:
        try:
            fields: Any = parse_exactly(key)
        except ValueError as error:
            raise NoRow(f"its key is not a JSON object ({error})") from None
        if unwrap is not None:
            fields = unwrap(fields)
        if type(fields) is not dict:
            raise NoRow(f"its key is not a JSON object but {shown(fields)}")
        if len(fields) == count:
            try:
                return tuple([encode(fields[name]) for name, encode in encoders])
            except (KeyError, Misfit):
                pass  # explained below
        raise _explained(columns, fields)

    return read


def _explained(columns: Sequence[Column], fields: dict[str, Any]) -> NoRow:
    """What is wrong with a key that could not be read."""
    names = [column.name for column in columns]
    if missing := [name for name in names if name not in fields]:
        return NoRow(f"its key has no field {_listed(missing)}: it has {_listed(fields) or 'none at all'}")
    if more := [name for name in fields if name not in names]:
        return NoRow(
            f"its key has the field {_listed(more)}, which is not a key column: messages that differ in it "
            "alone would be one row"
        )
    for column in columns:
        if fields[column.name] is None:
            return NoRow(f"column `{column.name}` of its key is null")
        try:
            encoder_of(column.type)(fields[column.name])
        except Misfit as misfit:
            return NoRow(f"its key does not fit {in_column(column, misfit)}")
    raise AssertionError("the key can be read")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(shown, islice(names, 5)))
