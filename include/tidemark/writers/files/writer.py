"""The ``files`` writer: one file per binding, Parquet with the log's columns or JSON lines.

A binding's file appears atomically, complete and under its final name. Delivering the binding again produces
the same bytes, so the file is verified and kept; a file with other bytes under that name is refused, never
overwritten. Single messages of a resume are written to a staging file and discarded; the file itself is
created from all of them when the binding is finished. Every file is recorded in the log's folder, so that a
missing or changed file is detected later.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa

from tidemark.delivery.state.earlier_pipelines import Earlier, LeftOver
from tidemark.delivery.writer import Check, Later, Part, Writing, Written, admit
from tidemark.errors import with_fields
from tidemark.faults import FaultPoint, reach
from tidemark.log.errors import FileDamaged
from tidemark.log.files.folder import STAGING, Digesting, Folder
from tidemark.log.files.parquet import LOG_SCHEMA, write_parquet
from tidemark.log.message_text import readable
from tidemark.log.model.binding import Binding
from tidemark.log.model.manifest import LogFile
from tidemark.writers.errors import WriterError
from tidemark.writers.files.kind import FileFormat, FilesDeclaration
from tidemark.writers.files.ledger import FilesLedger, MadeFile
from tidemark.writers.transformed import TransformingWriter

PREFIX = "_reachable-"
AREA = "reachable"


def try_folder(folder: Folder, suffix: str) -> None:
    """Raise the error that a delivery would get; leaves nothing behind."""
    name = f"{PREFIX}{uuid4().hex}.{suffix}"
    try:
        folder.write_once(name, b"", AREA)
    finally:
        folder.remove(name)
    # Left by probes that were killed. A concurrent probe tolerates the removal of its file.
    for left in folder.list_files("", f".{suffix}"):
        if left.startswith(PREFIX):
            folder.remove(left)
    folder.sweep(lambda area: area == AREA)


@with_fields
class NameTaken(WriterError):
    """There is another file with other bytes under the name of a binding's file."""

    needs_person = True

    owner: str
    path: str
    expected: str
    found: str

    text = (
        "{owner}: {path} is damaged, or another program wrote it (digest {found:.12} instead of "
        "{expected:.12}). It was kept as it is; nothing was delivered. Move it away, then resume."
    )


@dataclass(frozen=True)
class FilesWriter(TransformingWriter):
    """Writes one file per binding into a folder.

    Attributes:
        pipeline: The pipeline's name.
        declared: The writer's declaration.
        log: The log's folder, where files are recorded; empty for no ledger.
        source_format: The source format, which decides how transforms read a value.
    """

    pipeline: str
    declared: FilesDeclaration
    log: str = ""
    source_format: str = "json"

    @property
    def shape(self) -> Mapping[str, Any]:
        """See ``Writer.shape``."""
        keys = {"kind", "path", "format", "namespaces", "transforms"}
        return {**self.declared.model_dump(mode="json", include=keys), **self.transformation.shape}

    @property
    def verifier(self) -> str:
        """See ``Writer.verifier``."""
        return "tidemark.verification.outputs.files:verify_files"

    @property
    def compared_by(self) -> str:
        """See ``Writer.compared_by``."""
        return "tidemark.verification.renditions.files:compare_files"

    def prepare(self) -> None:
        """Nothing: the folder is created with the first file."""

    def refuses_rendition(self) -> str | None:
        """See ``Writer.refuses_rendition``: readers take every file of the folder."""
        there = next(iter(self.folder.list_files("", f".{self.declared.format.value}")), None)
        return f"folder {self.declared.path} has files already, such as {there}" if there else None

    def cut(self, binding: Binding, files: Sequence[LogFile]) -> list[Part]:
        """One part, because a binding is one file."""
        return [Part(binding, tuple(files))]

    def write(self, part: Part, writing: Writing) -> Written:
        """See ``Writer.write``."""
        counted, was_there = _Counted(self, writing.batches), False
        area = _stem(part.binding) if part.is_whole else _area_of_singles(part.binding)
        try:
            with self.folder.stage(area) as staged:
                written = _write(self.declared.format, staged.sink, counted)
                if part.is_whole:
                    writing.lease.check()
                    was_there = self.folder.exists(self.final(part.binding))
                    staged.settle(self.final(part.binding))
        except FileDamaged as other:
            raise NameTaken(self.folder.owner, other.path, other.expected, other.found) from other
        if part.is_whole:
            reach(FaultPoint.FILE_NAMED)
            self._record(MadeFile(self.final(part.binding), staged.sink.size, staged.sink.digest))
        else:
            self._remember_singles(part.binding)
        return counted.summary(written, was_there)

    def _record(self, made: MadeFile) -> None:
        if self.ledger:
            self.ledger.note(made)
            reach(FaultPoint.FILE_RECORDED)

    def finish(self, part: Part, writing: Writing) -> None:
        """Create the file after single messages; after a bulk delivery it is there already."""
        writing.lease.check()
        if self.folder.exists(_singles(part.binding)) or not self.folder.exists(self.final(part.binding)):
            self.write(part, writing)
        over = (_stem(part.binding), _area_of_singles(part.binding))
        self.folder.sweep(lambda area: area in over)

    def refuses_left_over(self, earlier: Earlier) -> LeftOver | None:
        """See ``Writer.refuses_left_over``: file names are ids, which begin at 0 again with every
        pipeline."""
        if not earlier.had_writer:
            return None
        ending = f".{self.declared.format.value}"
        there = sorted(name for name in self.folder.sizes() if _STEM.match(name) and name.endswith(ending))
        if not there:
            return None
        problem = (
            f"{self.declared.path} has {len(there)} files of an earlier pipeline of this name, which was "
            f"forgotten ({there[0]} is the first). Ids have begun anew since, so old and new files would mix"
        )
        return LeftOver(problem, "Move them away, or give the writer another path")

    def keeps(self, first_id: int, last_id: int) -> str | None:
        """See ``Writer.keeps``."""
        names = filter(None, map(_STEM.match, self.folder.sizes()))
        there = [one for one in names if int(one["end"]) >= first_id and int(one["base"]) <= last_id]
        return f"{len(there)} of their files are there already and are kept" if there else None

    def is_reachable(self) -> None:
        """Create a file in the folder as a delivery does, and remove it."""
        try_folder(self.folder, self.declared.format.value)

    def refuses_redelivery(self, message: Mapping[str, Any], later: Later) -> str | None:
        """Refuses only what filter and transforms drop: files have no order among each other."""
        return self.transformation.refusal_of(self.declared.namespaces, message)

    def redeliver(self, message: Mapping[str, Any], mark: Mapping[str, Any], lease: Check) -> None:
        """Writes a file of its own: the binding's file is without the message and never changes."""
        letter = pa.RecordBatch.from_pylist([dict(message)], schema=LOG_SCHEMA)
        try:
            with self.folder.stage("redelivered") as staged:
                _write(self.declared.format, staged.sink, _Counted(self, [letter]))
                lease.check()
                staged.settle(f"redelivered-{message['id']:020d}.{self.declared.format.value}")
        except FileDamaged as other:
            raise NameTaken(self.folder.owner, other.path, other.expected, other.found) from other
        self.folder.sweep(lambda area: area == "redelivered")

    def refuses_acknowledgement(self, message: Mapping[str, Any]) -> str | None:
        """Refuses a message that is in a file: without it, the file would have other bytes."""
        for path in self.folder.list_files("", f".{self.declared.format.value}"):
            ids = _STEM.match(path)
            if ids and int(ids["base"]) <= message["id"] <= int(ids["end"]):
                return f"it is in {self.folder.at(path)} already. Resume: the file is kept as it is."
        return None

    @property
    def folder(self) -> Folder:
        """The folder of its files."""
        return Folder(f"{self.pipeline}/{self.name}", self.declared.path)

    @property
    def ledger(self) -> FilesLedger | None:
        """The ledger of its files; None where no log folder is set."""
        if not self.log:
            return None
        return FilesLedger(self.pipeline, self.name, self.log, self.declared.path)

    def final(self, binding: Binding) -> str:
        """The name of a binding's file."""
        return f"{_stem(binding)}.{self.declared.format.value}"

    def digest_of(self, batches: Iterable[pa.RecordBatch]) -> str:
        """The digest of the file that these messages would produce. Creates no file."""
        sink = Digesting(_Nowhere(), nullcontext)
        _write(self.declared.format, sink, _Counted(self, batches))
        return sink.digest

    def _remember_singles(self, binding: Binding) -> None:
        """Store a marker that the file has to be created, or verified where it exists."""
        if not self.folder.exists(_singles(binding)):
            self.folder.write_once(_singles(binding), b"", _area_of_singles(binding))


class _Counted:
    """The messages that pass the filter and the transforms, and how many did not."""

    def __init__(self, writer: FilesWriter, batches: Iterable[pa.RecordBatch]) -> None:
        self._writer, self._batches = writer, batches
        self.seen = self.admitted = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        pattern, transformation = re.compile(self._writer.declared.namespaces), self._writer.transformation
        for batch in self._batches:
            admitted = admit(batch, pattern)
            self.seen += batch.num_rows
            self.admitted += admitted.num_rows
            yield transformation.apply_all(admitted)

    def summary(self, written: int, was_there: bool) -> Written:
        """The counts. Messages in a file that existed before count as ignored."""
        filtered, ignored = self.seen - self.admitted, self.admitted - written
        return Written(0, filtered, self.admitted) if was_there else Written(written, filtered, ignored)


class _Nowhere:
    """A sink that discards all bytes."""

    def write(self, data: Any) -> None:
        """Discard the bytes."""


def messages_of(writer: FilesWriter, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """These messages as they are in the writer's file: filtered and transformed."""
    return iter(_Counted(writer, batches))


_STEM = re.compile(r"(?P<base>\d{20})-(?P<end>\d{20})\.")


def _stem(binding: Binding) -> str:
    return f"{binding.base:020d}-{binding.end:020d}"


def _area_of_singles(binding: Binding) -> str:
    return f"{_stem(binding)}-singly"


def _singles(binding: Binding) -> str:
    return f"{STAGING}/{_area_of_singles(binding)}/singles"


def _write(format_: FileFormat, sink: Digesting, batches: Iterable[pa.RecordBatch]) -> int:
    if format_ is FileFormat.PARQUET:
        return write_parquet(sink, batches)
    count = 0
    for batch in batches:
        for message in batch.to_pylist():
            sink.write((json.dumps(readable(message), ensure_ascii=False) + "\n").encode())
            count += 1
    return count
