"""Keys and rows of a collection as Python values, in the driver's own types."""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import error as StructError
from typing import Any

from tidemark.cassandra.python_values import PythonType
from tidemark.collection.model.keys import Key
from tidemark.collection.tables.errors import KeyRefused
from tidemark.collection.tables.layout import CollectionPlace

PythonRow = dict[str, Any]
"""A row by column name, the key first."""

_REFUSED = (StructError, TypeError, ValueError, AttributeError, OverflowError, KeyError)
"""What the types of the driver raise for a value of another type."""


@dataclass(frozen=True, slots=True)
class VisibleRow:
    """What readers see of a key at a time: neither the message nor its place in the log.

    Attributes:
        key: The serialized CQL value of each key column.
        values: The serialized CQL value of each data column, None for null.
    """

    key: Key
    values: tuple[bytes | None, ...]


class PythonRows:
    """Encodes keys and decodes rows of one collection."""

    def __init__(self, place: CollectionPlace) -> None:
        self._place = place
        self._keys = {column.name: PythonType(column.type) for column in place.schema.key}
        self._data = {column.name: PythonType(column.type) for column in place.schema.columns}

    def encode_key(self, key: Mapping[str, Any]) -> Key:
        """The cells of a key. Raises KeyRefused for other columns than the key's, and for other types."""
        columns = self._place.key_columns
        if other := [name for name in key if name not in columns]:
            raise KeyRefused(str(self._place), f"`{other[0]}` is not a column of its key", columns)
        return tuple([self._encode(name, key.get(name)) for name in columns])

    def decode_key(self, key: Key) -> PythonRow:
        """The key columns of a row."""
        return {name: one.decode(cell) for (name, one), cell in zip(self._keys.items(), key, strict=True)}

    def decode(self, row: VisibleRow) -> PythonRow:
        """A row by column name, the key first."""
        values = zip(self._data.items(), row.values, strict=True)
        return self.decode_key(row.key) | {name: one.decode(cell) for (name, one), cell in values}

    def _encode(self, name: str, value: Any) -> bytes:
        if value is None:
            raise KeyRefused(str(self._place), f"there is no value for `{name}`", self._place.key_columns)
        try:
            return self._keys[name].encode(value)
        except _REFUSED as error:
            problem = f"{value!r} is no value for `{name}` ({error})"
            raise KeyRefused(str(self._place), problem, self._place.key_columns) from error
