"""Messages on their way through a writer's filter and transforms: bytes to documents and back.

A message without a value has nothing to transform and passes as it is. What the source's format cannot read
as a document, or makes a transform raise, is a bad message; nothing is dropped but what a transform drops.
What comes out of a transform is written as JSON, whatever format it was read in.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from tidemark.delivery.transforms.chain import Chain, TransformFailed
from tidemark.delivery.transforms.document import Document, Operation
from tidemark.delivery.writer import BadMessage
from tidemark.journal.codec import json_text
from tidemark.log.files.parquet import LOG_SCHEMA
from tidemark.pipeline.kinds import FORMATS
from tidemark.pipeline.transforms import Transform


@dataclass(frozen=True)
class Transformation:
    """The transforms of one writer, ready for its messages."""

    declared: Sequence[Transform]
    pipeline: str
    writer: str
    source_format: str = "json"

    @property
    def shape(self) -> Mapping[str, str]:
        """What of the source shapes the output: the format, where transforms read it in its own way."""
        if not self.declared or not FORMATS.find(self.source_format).shapes_output:
            return {}
        return {"source_format": self.source_format}

    def apply(self, message: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What becomes of one message; None when it is dropped."""
        if not self.declared or message["value"] is None:
            return message
        chain = self._chain  # where it cannot be made, that is not the message's fault
        try:
            data = self._read(message["value"])
        except ValueError as error:
            what = (
                "JSON object" if self._read is FORMATS.find("json").read else f"{self.source_format} document"
            )
            raise self._bad(message, f"its value is not a {what} ({error})") from error
        try:
            return _through(chain, message, data)
        except TransformFailed as error:
            raise self._bad(message, str(error)) from error
        except ValueError as error:
            raise self._bad(message, f"what its transforms made of it is not JSON ({error})") from error

    def apply_all(self, messages: pa.RecordBatch) -> pa.RecordBatch:
        """What is left of the messages, in the same order."""
        if not self.declared or messages.num_rows == 0:
            return messages
        results = map(self.apply, messages.to_pylist())
        return pa.RecordBatch.from_pylist([kept for kept in results if kept is not None], schema=LOG_SCHEMA)

    def refusal_of(self, namespaces: str, message: Mapping[str, Any]) -> str | None:
        """Why a writer of these namespaces would write nothing of the message; None where it would."""
        if re.search(namespaces, message["namespace"]) is None:
            return f"its namespace {message['namespace']} is not one of this writer's ({namespaces})."
        try:
            changed = self.apply(message)
        except BadMessage as bad:
            return f"it still cannot be understood: {bad.problem.rstrip('.')}."
        return "the transforms drop it: there is nothing to write." if changed is None else None

    @cached_property
    def _chain(self) -> Chain:
        return Chain(self.declared)

    @cached_property
    def _read(self) -> Any:
        return FORMATS.find(self.source_format).read

    def _bad(self, message: Mapping[str, Any], problem: str) -> BadMessage:
        place = (message["topic"], message["partition"], message["offset"], message["id"])
        return BadMessage(self.pipeline, self.writer, *place, problem)


def _through(chain: Chain, message: Mapping[str, Any], data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    origin = message["namespace"]
    result = chain.apply(Document(Operation.INSERT, message["timestamp"], origin, data), origin)
    if result is None:
        return None
    value = None if result.op is Operation.DELETE else json_text.canonical(dict(result.data)).encode()
    return {**message, "timestamp": result.ts, "namespace": result.namespace, "value": value}
