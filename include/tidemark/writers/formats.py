"""The built-in source formats: how a writer's transforms read the value of a message.

``json`` and ``raw`` are two names of one format: any Kafka records. Values are read only where a writer has
transforms, and then as JSON objects. ``kafka-journal`` reads values in the same way. It is the only format
that a writer of kind ``journal`` and the compaction policy ``journal`` accept. ``oplog`` reads operations on
objects: a transform gets them as their topic should have them, and refuses everything else.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from tidemark.kafka.topic_shape import TopicTimestamps
from tidemark.pipeline import kinds
from tidemark.pipeline.kinds import FormatKind


def _json_object(value: bytes) -> Mapping[str, Any]:
    data = _parse()(value)
    if not isinstance(data, dict):
        raise ValueError(f"it is a JSON {type(data).__name__}")
    return data


def _exact_json_object(value: bytes) -> Mapping[str, Any]:
    return _read_exactly()(value)


def _operation(value: bytes) -> Mapping[str, Any]:
    return _read_operation()(value)


# Imported once and late: pipeline files are read without them, and an import statement takes longer than
# reading a short message.
@cache
def _parse() -> Callable[[bytes], object]:
    from tidemark.journal.codec.json_text import parse

    return parse


@cache
def _read_exactly() -> Callable[[bytes], Mapping[str, Any]]:
    from tidemark.collection.model.documents import json_object

    return json_object


@cache
def _read_operation() -> Callable[[bytes], Mapping[str, Any]]:
    from tidemark.operations.errors import BadOperation
    from tidemark.operations.operation import fields_of
    from tidemark.operations.reading import read_operation

    def read(value: bytes) -> Mapping[str, Any]:
        try:
            return fields_of(read_operation(value))
        except BadOperation as error:
            raise ValueError(str(error)) from None

    return read


JSON = FormatKind("json", _json_object, shapes_output=False, read_exactly=_exact_json_object)
RAW = replace(JSON, name="raw")
KAFKA_JOURNAL = replace(JSON, name=kinds.KAFKA_JOURNAL, policy="journal")
OPLOG = FormatKind(
    kinds.OPLOG,
    _operation,
    policy="oplog",
    has_fixed_partitions=True,
    # The time of an old operation would let the broker refuse its record, or remove it at once.
    timestamps=TopicTimestamps.APPENDED,
)
