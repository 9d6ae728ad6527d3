"""The ``files`` writer: one file per binding, Parquet with the log's columns or JSON lines.

A binding's file appears whole, under its final name, once. Delivering the binding again makes the same
bytes, so the file is verified and kept; a file with other bytes under that name is refused, never
overwritten.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidemark.delivery import pipeline as declaration
from tidemark.log.binding import Binding
from tidemark.log.files import LogFolder, write_parquet
from tidemark.log.folder import Digesting, Folder
from tidemark.log.manifest import LogFile
from tidemark.log.readable import readable
from tidemark.writers.writer import Part, Written, admit


@dataclass(frozen=True)
class FilesWriter:
    """Writes a binding's messages into a folder."""

    pipeline: str
    declared: declaration.FilesDeclaration

    @property
    def name(self) -> str:
        """See ``Writer.name``."""
        return self.declared.name

    @property
    def shape(self) -> Mapping[str, Any]:
        """See ``Writer.shape``."""
        return self.declared.model_dump(mode="json", include={"kind", "path", "format", "namespaces"})

    def prepare(self) -> None:
        """Nothing: folders come with the first file."""

    def cut(self, binding: Binding, files: Sequence[LogFile]) -> list[Part]:
        """One part, because a binding is one file."""
        return [Part(binding, tuple(files))]

    def write(self, part: Part, log: LogFolder) -> Written:
        """See ``Writer.write``."""
        pattern = re.compile(self.declared.namespaces)
        seen = 0

        def admitted() -> Iterator[pa.RecordBatch]:
            nonlocal seen
            for file in part.files:
                for batch in log.read_file(file):
                    seen += batch.num_rows
                    yield admit(batch, pattern)

        with Folder(f"{self.pipeline}/{self.name}", self.declared.path).stage() as staged:
            written = _write(self.declared.format, staged.sink, admitted())
            staged.settle(f"{part.binding.base:020d}-{part.binding.end:020d}.{self.declared.format.value}")
        return Written(written=written, filtered=seen - written)

    def finish(self, binding: Binding) -> None:
        """Nothing: the file has its final name already."""


def _write(format_: declaration.FileFormat, sink: Digesting, batches: Iterator[pa.RecordBatch]) -> int:
    if format_ is declaration.FileFormat.PARQUET:
        return write_parquet(sink, batches)
    count = 0
    for batch in batches:
        for message in batch.to_pylist():
            sink.write((json.dumps(readable(message), ensure_ascii=False) + "\n").encode())
            count += 1
    return count
