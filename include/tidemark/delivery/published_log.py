"""The published log as deliveries read it: bindings beyond a position, and their messages."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.writer import Part
from tidemark.log.bindings.door import Bindings
from tidemark.log.errors import LogError
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import Binding
from tidemark.log.model.manifest import LogFile, Manifest
from tidemark.log.publish import read_log, read_manifest
from tidemark.log.state.control import LogControl
from tidemark.log.state.readers import Reading, reading_log


class LogUnreadable(DeliveryError):
    """The log cannot be read. No writer or target has failed."""

    needs_person = True


@dataclass(frozen=True, slots=True)
class PublishedLog:
    """A snapshot of the log at the time it was opened. Later publications are left to the next run.

    Attributes:
        control: The log in the control plane.
        folder: The log's files.
        manifest: The files of the snapshot.
        reading: The registration that keeps sweeps from removing the snapshot's files; None for short reads.
    """

    control: LogControl
    folder: LogFolder
    manifest: Manifest
    reading: Reading | None = None

    @classmethod
    def open(cls, control: LogControl, root: str) -> "PublishedLog":
        """The log of a pipeline."""
        folder = LogFolder(control.pipeline, root)
        return cls(control, folder, read_log(control, folder))

    def reopened(self) -> "PublishedLog":
        """The log as it is now."""
        head = self.reading.take_up() if self.reading else self.control.log_head()
        return replace(self, manifest=read_manifest(self.control.pipeline, self.folder, head))

    @contextmanager
    def held(self, who: str) -> "Iterator[PublishedLog]":
        """The log as it is now; no sweep removes its files while the block runs."""
        with reading_log(self.control, who) as taken:
            yield replace(self, reading=taken).reopened()

    @property
    def bindings(self) -> Bindings:
        """The bindings of the pipeline, published or not."""
        return Bindings(self.control, self.folder)

    @property
    def end(self) -> int:
        """The last id of the log."""
        return self.manifest.end

    def waiting(self, position: int) -> Iterator[tuple[Binding, Sequence[LogFile]]]:
        """The published bindings that end after a position, oldest first, each with the files that may have
        its messages."""
        for binding in self.bindings.after(position):
            if binding.t > self.manifest.t:
                return
            yield binding, self.manifest.files_of(binding)

    def last_ids(self, files: Iterable[LogFile], position: int, first_id: int = 0) -> dict[str, int]:
        """The last id between ``first_id`` and ``position`` of every namespace in these files. A file has one
        namespace, its topic."""
        found: dict[str, int] = {}
        with reading():
            for file in files:
                last_id = self.folder.last_id(file, first_id, position)
                if last_id is not None:
                    found[file.topic] = max(last_id, found.get(file.topic, last_id))
        return found


@contextmanager
def reading() -> Iterator[None]:
    """Convert errors of reading the log to ``LogUnreadable``, so that they are not taken for the target's."""
    try:
        yield
    except (LogError, OSError, pa.ArrowException) as error:
        raise LogUnreadable(str(error)) from error


def read_messages(
    folder: LogFolder, part: Part, acknowledged: Collection[int], columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The messages of a part in id order, without acknowledged ones; ``columns`` None for all columns."""
    with reading():
        yield from _read(folder, part, acknowledged, columns)


def _read(
    folder: LogFolder, part: Part, acknowledged: Collection[int], columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    skipped = pa.array(sorted(acknowledged), pa.int64())
    # Ids of one binding are grouped by partition, so files in partition order are in id order.
    for file in sorted(part.files, key=lambda file: (file.place, file.first_id)):
        for batch in folder.read_file(file, columns, *part.ids):
            kept = batch
            if len(skipped):
                kept = batch.filter(pc.invert(pc.is_in(batch.column("id"), value_set=skipped)))
            if kept.num_rows:
                yield kept
