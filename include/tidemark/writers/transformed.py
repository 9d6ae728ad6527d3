"""A writer's transforms applied to messages: bytes to documents and back.

A message without a value is passed on unchanged. A value that the source's format cannot read, or that makes
a transform raise, is a bad message. A message is dropped only by a transform. The result of transforms is
written as JSON, in every source format.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa

from tidemark.delivery.transforms.chain import Chain, TransformFailed
from tidemark.delivery.transforms.document import Document, Operation
from tidemark.delivery.writer import BadMessage, Writer
from tidemark.journal.codec import json_text
from tidemark.log.files.parquet import LOG_SCHEMA
from tidemark.pipeline.kinds import FORMATS
from tidemark.pipeline.transforms import Transform


@dataclass(frozen=True)
class Transformation:
    """The transforms of one writer, ready for its messages.

    Attributes:
        declared: The declared transforms, in order.
        pipeline: The pipeline's name, for errors.
        writer: The writer's name, for errors.
        source_format: The format that values are read in.
    """

    declared: Sequence[Transform]
    pipeline: str
    writer: str
    source_format: str = "json"

    @property
    def shape(self) -> Mapping[str, str]:
        """The source settings that belong to the writer's shape: the format, where transforms depend on
        it."""
        if not self.declared or not FORMATS.find(self.source_format).shapes_output:
            return {}
        return {"source_format": self.source_format}

    def apply(self, message: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The transformed message; None when it is dropped. Raises ``BadMessage``."""
        if not self.declared or message["value"] is None:
            return message
        # Outside of ``try``: where they cannot be built or imported, no message is at fault.
        chain, read = self._chain, self._read
        try:
            data = read(message["value"])
        except ValueError as error:
            what = "JSON object" if read is FORMATS.find("json").read else f"{self.source_format} document"
            raise self._bad(message, f"its value is not a {what} ({error})") from error
        try:
            return _through(chain, message, data)
        except TransformFailed as error:
            raise self._bad(message, str(error)) from error
        except ValueError as error:
            raise self._bad(message, f"what its transforms made of it is not JSON ({error})") from error

    def apply_all(self, messages: pa.RecordBatch) -> pa.RecordBatch:
        """The transformed messages without dropped ones, in the same order. Raises ``BadMessage``."""
        if not self.declared or messages.num_rows == 0:
            return messages
        results = map(self.apply, messages.to_pylist())
        return pa.RecordBatch.from_pylist([kept for kept in results if kept is not None], schema=LOG_SCHEMA)

    def refusal_of(self, namespaces: str, message: Mapping[str, Any]) -> str | None:
        """Why a writer with these ``namespaces`` would not write the message, as a sentence; None where it
        would."""
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


class TransformingDeclaration(Protocol):
    """What ``TransformingWriter`` reads of a writer's declaration."""

    name: str
    transforms: Sequence[Transform]
    reconcile: int


class TransformingWriter(Writer):
    """What writers with transforms have in common.

    Attributes:
        pipeline: The pipeline's name.
        declared: The writer's declaration.
        source_format: The source format, which decides how transforms read a value.
    """

    pipeline: str
    declared: Any
    source_format: str

    @property
    def name(self) -> str:
        """See ``Writer.name``."""
        return self._declaration.name

    @property
    def compared_after_delivery(self) -> int:
        """See ``Writer.compared_after_delivery``."""
        return self._declaration.reconcile

    @property
    def transformation(self) -> Transformation:
        """The writer's transforms."""
        return Transformation(self._declaration.transforms, self.pipeline, self.name, self.source_format)

    @property
    def _declaration(self) -> TransformingDeclaration:
        declared: TransformingDeclaration = self.declared
        return declared


def _through(chain: Chain, message: Mapping[str, Any], data: Mapping[str, Any]) -> Mapping[str, Any] | None:
    origin = message["namespace"]
    result = chain.apply(Document(Operation.INSERT, message["timestamp"], origin, data), origin)
    if result is None:
        return None
    value = None if result.op is Operation.DELETE else json_text.canonical(dict(result.data)).encode()
    return {**message, "timestamp": result.ts, "namespace": result.namespace, "value": value}
