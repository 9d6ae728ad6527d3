"""Messages on their way through a writer's transforms: bytes to documents and back.

A message without a value has nothing to transform and passes as it is. What cannot be read as a JSON object,
or makes a transform raise, is a bad message; nothing is dropped but what a transform drops.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tidemark.delivery.transform_chain import Chain, Document, Operation, TransformFailed
from tidemark.delivery.writer import BadMessage
from tidemark.journal.codec import json_text
from tidemark.log.files.parquet import LOG_SCHEMA
from tidemark.pipeline.transforms import AnyTransform


class Transformation:
    """The transforms of one writer, ready for its messages."""

    def __init__(self, declared: Sequence[AnyTransform], pipeline: str, writer: str) -> None:
        self._chain = Chain(declared) if declared else None
        self._pipeline, self._writer = pipeline, writer

    def apply(self, message: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What becomes of one message; None when it is dropped."""
        if self._chain is None or message["value"] is None:
            return message
        try:
            return _through(self._chain, message)
        except TransformFailed as error:
            raise self._bad(message, str(error)) from error
        except ValueError as error:
            raise self._bad(message, f"its value is not a JSON object ({error})") from error

    def _bad(self, message: Mapping[str, Any], problem: str) -> BadMessage:
        place = (message["topic"], message["partition"], message["offset"], message["id"])
        return BadMessage(self._pipeline, self._writer, *place, problem)


def transformed(
    messages: pa.RecordBatch, declared: Sequence[AnyTransform], pipeline: str, writer: str
) -> pa.RecordBatch:
    """What is left of the messages, in the same order."""
    if not declared or messages.num_rows == 0:
        return messages
    transformation = Transformation(declared, pipeline, writer)
    results = map(transformation.apply, messages.to_pylist())
    return pa.RecordBatch.from_pylist([kept for kept in results if kept is not None], schema=LOG_SCHEMA)


def _through(chain: Chain, message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    data = json_text.parse(message["value"])
    if not isinstance(data, dict):
        raise ValueError(f"it is a JSON {type(data).__name__}")
    origin = message["namespace"]
    result = chain.apply(Document(Operation.INSERT, message["timestamp"], origin, data), origin)
    if result is None:
        return None
    value = None if result.op is Operation.DELETE else json_text.canonical(dict(result.data)).encode()
    return {**message, "timestamp": result.ts, "namespace": result.namespace, "value": value}
