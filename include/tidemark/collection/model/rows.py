"""The rows that messages of the log make: their keys, their cells, and the message that makes none.

The result depends on the messages and the rules alone. The lowest message that cannot be processed ends a
batch: everything below it has its row, nothing above it was looked at.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from itertools import repeat
from struct import Struct
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.collection.model.documents import json_object
from tidemark.collection.model.envelopes.envelope import (
    Change,
    Envelope,
    EnvelopeName,
    Headers,
    KeySource,
    ReadWhole,
)
from tidemark.collection.model.envelopes.registry import ENVELOPES
from tidemark.collection.model.key_format import KeyFormat, usual_key_format
from tidemark.collection.model.keys import Key, ReadKey, key_reader
from tidemark.collection.model.no_row import NoRow
from tidemark.collection.model.row import CollectionRow, key_bytes
from tidemark.collection.model.schema import CollectionSchema, Column
from tidemark.collection.model.values.encoders import encoder_of, in_column
from tidemark.collection.model.values.misfit import Misfit
from tidemark.delivery.records import headers_of
from tidemark.delivery.transforms.chain import Chain, TransformFailed
from tidemark.delivery.transforms.document import Document, Operation
from tidemark.delivery.writing import admit
from tidemark.operations.corrections import Correction
from tidemark.outputs.model.digest import shard_of
from tidemark.pipeline.transforms import Transform

Cells = tuple[bytes | None, ...]
ReadCells = Callable[[Mapping[str, Any]], Cells]
"""From the fields of a row to the cells of the data columns; raises ``NoRow``."""

KEYS_REMEMBERED = 32_768
"""The message keys whose cells and shard are kept, because most keys come again. Long ones are not kept."""
MOST_REMEMBERED_BYTES = 256

_id_cell = Struct(">q").pack


class BadRow(NamedTuple):
    """A message of which no row can be made.

    Attributes:
        id: The message's id.
        topic: Its topic.
        partition: Its partition.
        offset: Its offset.
        problem: Why, as a clause.
    """

    id: int
    topic: str
    partition: int
    offset: int
    problem: str


@dataclass(frozen=True, slots=True)
class RowBatch:
    """What a batch of messages made. Every message below ``bad`` is counted once.

    Attributes:
        rows: The rows, in the order of the messages: one for each message that is written.
        filtered: How many messages the writer's ``namespaces`` keep out.
        ignored: How many messages a transform drops, or say nothing about rows.
        bad: The lowest message that cannot be processed; None where all can.
        corrections: Those of the messages that are corrections, by id. They have rows here, void or not.
    """

    rows: list[CollectionRow]
    filtered: int
    ignored: int
    bad: BadRow | None = None
    corrections: Mapping[int, Correction] = field(default_factory=dict)

    @property
    def written(self) -> int:
        """How many messages have a row."""
        return len(self.rows)


@dataclass(frozen=True)
class RowRules:
    """Everything that decides which row a message makes. Can be pickled.

    Attributes:
        schema: The columns, and the number of shards.
        envelope: What the values of messages are.
        key_format: How keys of messages are read; None: by the envelope, or the key's columns.
        transforms: The declared transforms, in order.
        namespaces: Messages from other namespaces make no rows.
        read: Reads the value of a message as a document; raises ``ValueError``.
    """

    schema: CollectionSchema
    envelope: EnvelopeName
    key_format: KeyFormat | None = None
    transforms: tuple[Transform, ...] = ()
    namespaces: str = ".*"
    read: Callable[[bytes], Mapping[str, Any]] = json_object

    def __reduce__(self) -> tuple[type["RowRules"], tuple[Any, ...]]:
        # Without what was compiled: functions made by functions are not pickled.
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def admitted(self) -> re.Pattern[str]:
        """The expression for namespaces."""
        return re.compile(self.namespaces)

    @cached_property
    def make(self) -> "MakeRow":
        """The compiled rules. Raises ``TransformFailed`` where a transform cannot be made in this process."""
        return _compiled(self)


Made = tuple[Key, Cells, bool, int, Correction | None]
"""What a message makes: the key, the data cells, whether the row is gone, the shard, and the correction."""
MakeRow = Callable[[int, bytes | None, bytes | None, int, str, Headers], Made | None]
"""From a message's id, key, value, timestamp, namespace and headers; None for a message that is ignored.
Raises ``NoRow`` and ``TransformFailed``."""
_NO_HEADERS: Headers = ()


def rows_of(messages: pa.RecordBatch, rules: RowRules) -> RowBatch:
    """The rows of messages with the log's columns, which are in id order."""
    make = rules.make
    admitted = admit(messages, rules.admitted)
    rows: list[CollectionRow] = []
    corrections: dict[int, Correction] = {}
    ignored = 0
    columns = (admitted[name].to_pylist() for name in _READ)
    has_headers = ENVELOPES[rules.envelope].has_corrections
    headers = headers_of(admitted["headers"]) if has_headers else repeat(_NO_HEADERS, admitted.num_rows)
    for id_, key, value, timestamp, namespace, t, write_time, topic, partition, offset, own in zip(
        *columns, headers, strict=True
    ):
        try:
            made = make(id_, key, value, timestamp, namespace, own)
        except (NoRow, TransformFailed) as error:
            below = pc.sum(pc.less(messages["id"], id_)).as_py() or 0
            bad = BadRow(id_, topic, partition, offset, str(error))
            return RowBatch(rows, below - len(rows) - ignored, ignored, bad, corrections)
        if made is None:
            ignored += 1
            continue
        cells, values, gone, shard, correction = made
        if correction is not None:
            corrections[id_] = correction
        rows.append(CollectionRow(cells, values, t, id_, write_time, gone, topic, partition, offset, shard))
    return RowBatch(rows, messages.num_rows - admitted.num_rows, ignored, None, corrections)


_READ = (
    *("id", "key", "value", "timestamp", "namespace"),
    *("t", "write_time", "topic", "partition", "offset"),
)


def _compiled(rules: RowRules) -> MakeRow:
    envelope = ENVELOPES[rules.envelope]
    if envelope.read_whole is not None:
        return _making_whole(envelope.read_whole, rules.schema.shards)
    return _making_by_columns(envelope, rules)


def _making_whole(read: ReadWhole, shards: int) -> MakeRow:
    def shard(cells: Key) -> int:
        return shard_of(key_bytes(cells), shards)

    remembered = lru_cache(KEYS_REMEMBERED)(shard)

    def make(
        id_: int, key: bytes | None, value: bytes | None, timestamp: int, namespace: str, headers: Headers
    ) -> Made:
        cells, values, is_gone, correction = read(key, value, headers)
        is_long = key is not None and len(key) > MOST_REMEMBERED_BYTES
        return cells, values, is_gone, shard(cells) if is_long else remembered(cells), correction

    return make


def _making_by_columns(envelope: Envelope, rules: RowRules) -> MakeRow:
    read, shards = rules.read, rules.schema.shards
    open_, chain = envelope.open, Chain(rules.transforms, ends_at_delete=True) if rules.transforms else None
    read_key, read_cells = _key_reader(rules, envelope), _cells_reader(rules.schema.columns, envelope)
    place = _key_places(read_key, shards) if read_key else None
    no_cells = (None,) * len(rules.schema.columns)

    def make(
        id_: int, key: bytes | None, value: bytes | None, timestamp: int, namespace: str, headers: Headers
    ) -> Made | None:
        if value is None:
            change = open_(None)
        else:
            try:
                document = read(value)
            except ValueError as error:
                raise NoRow(f"its value cannot be read ({error})") from None
            change = open_(document)
        if chain is not None and change is not None:
            change = _transformed(chain, change, timestamp, namespace)
        if change is None:
            return None
        op, data = change
        is_gone = op is Operation.DELETE
        if place is None:
            if is_gone:
                raise NoRow("a transform made a delete of it, and with `append` there is no row to delete")
            cells: Key = (_id_cell(id_),)
            shard = shard_of(key_bytes(cells), shards)
        else:
            cells, shard = place(key)
        return cells, no_cells if is_gone else read_cells(data), is_gone, shard, None

    return make


def _key_places(read_key: ReadKey, shards: int) -> Callable[[bytes | None], tuple[Key, int]]:
    """From a message key to its cells and its shard; raises ``NoRow``."""

    def place(key: bytes | None) -> tuple[Key, int]:
        cells = read_key(key)
        return cells, shard_of(key_bytes(cells), shards)

    remembered = lru_cache(KEYS_REMEMBERED)(place)

    def place_of(key: bytes | None) -> tuple[Key, int]:
        is_long = key is not None and len(key) > MOST_REMEMBERED_BYTES
        return place(key) if is_long else remembered(key)

    return place_of


def _transformed(chain: Chain, change: Change, timestamp: int, namespace: str) -> Change | None:
    document = chain.apply(Document(change.op, timestamp, namespace, change.data), namespace)
    return None if document is None else Change(document.op, document.data)


def _key_reader(rules: RowRules, envelope: Envelope) -> ReadKey | None:
    """The function that reads message keys; None where the id is the key."""
    if envelope.key_source is KeySource.MESSAGE_ID:
        return None
    columns = rules.schema.key
    key_format = rules.key_format or envelope.key_format or usual_key_format(columns)
    return key_reader(columns, key_format, envelope.unwrap_key)


def _cells_reader(columns: tuple[Column, ...], envelope: Envelope) -> ReadCells:
    encoders = tuple((column.name, encoder_of(column.type)) for column in columns)
    withheld = envelope.withheld

    def read_cells(data: Mapping[str, Any]) -> Cells:
        get = data.get
        try:
            return tuple(
                [None if (value := get(name)) is None else encode(value) for name, encode in encoders]
            )
        except Misfit:
            raise _explained(columns, data) from None

    def read_unless_withheld(data: Mapping[str, Any]) -> Cells:
        for column in columns:
            value = data.get(column.name)
            if type(value) is str and value in withheld:
                raise NoRow(
                    f"column `{column.name}` is not in it: a placeholder says that a large value did not "
                    "change. Make the database send whole rows (PostgreSQL: REPLICA IDENTITY FULL)"
                )
        return read_cells(data)

    return read_unless_withheld if withheld else read_cells


def _explained(columns: tuple[Column, ...], data: Mapping[str, Any]) -> NoRow:
    """The first column whose value does not fit."""
    for column in columns:
        value = data.get(column.name)
        try:
            if value is not None:
                encoder_of(column.type)(value)
        except Misfit as misfit:
            return NoRow(str(in_column(column, misfit)))
    raise AssertionError("every value fits")
