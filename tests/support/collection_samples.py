"""Collections in a few lines: their columns, the rules for their rows, and messages with keys and values."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter

from tidemark.collection.model.column_types import column_type
from tidemark.collection.model.envelopes.envelope import EnvelopeName
from tidemark.collection.model.key_format import KeyFormat
from tidemark.collection.model.rows import RowRules
from tidemark.collection.model.schema import CollectionSchema, Column
from tidemark.delivery.transforms import Document, Operation
from tidemark.log.files.parquet import LOG_SCHEMA
from tidemark.pipeline.transforms import TransformsOfRows

SENT_AT = 1_714_521_600_000
T = 1_714_521_700_000_000


def given_columns(**types: str) -> tuple[Column, ...]:
    """Columns by name and CQL type."""
    return tuple(Column(name, column_type(text)) for name, text in types.items())


def given_rules(
    envelope: str = "upsert",
    *,
    key: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    key_format: KeyFormat | None = None,
    transforms: list[dict[str, Any]] | None = None,
    namespaces: str = ".*",
    shards: int = 4,
) -> RowRules:
    """The rules of a collection: by default accounts by id, with an owner and a balance."""
    schema = CollectionSchema(
        given_columns(**(key or {"id": "text"})),
        given_columns(**({"owner": "text", "balance": "int"} if columns is None else columns)),
        shards,
    )
    declared = TypeAdapter(TransformsOfRows).validate_python(
        transforms or (), context={"TIDEMARK_TRANSFORMS": "tests"}
    )
    return RowRules(schema, EnvelopeName(envelope), key_format, declared, namespaces)


def given_records(
    *records: tuple[bytes | None, bytes | None],
    topic: str = "accounts",
    partition: int = 0,
    base: int = 100,
) -> pa.RecordBatch:
    """Messages of one partition, each as (key, value), with ids from ``base`` on."""
    return pa.RecordBatch.from_pylist(
        [
            {
                "id": base + place,
                "t": T,
                "write_time": T + place,
                "topic": topic,
                "partition": partition,
                "offset": 10 + place,
                "timestamp": SENT_AT,
                "timestamp_type": 0,
                "key": key,
                "value": value,
                "headers": None,
                "namespace": topic,
            }
            for place, (key, value) in enumerate(records)
        ],
        schema=LOG_SCHEMA,
    )


def deleted(document: Document) -> Document:
    """A user's function that deletes every row."""
    return replace(document, op=Operation.DELETE)


def with_operation(document: Document) -> Document:
    """A user's function that puts the operation into the field ``seen``."""
    return replace(document, data={**document.data, "seen": document.op.value})


def exploding(document: Document) -> Document:
    """A user's function that fails."""
    raise RuntimeError("no")


_calls = count()


def with_time(document: Document) -> Document:
    """A user's function that puts the time into the field ``seen``: another one at each call."""
    return replace(document, data={**document.data, "seen": next(_calls)})
