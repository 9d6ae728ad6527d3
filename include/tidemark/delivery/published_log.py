"""The published log as deliveries read it: bindings beyond a position, and their messages."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.writer import Part
from tidemark.log.errors import LogError
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import Binding
from tidemark.log.model.manifest import LogFile, Manifest
from tidemark.log.publish import read_log, read_manifest
from tidemark.log.state.control import LogControl
from tidemark.log.state.readers import Reading, reading_log


class LogUnreadable(DeliveryError):
    """The log itself cannot be read; no writer has failed."""

    needs_person = True


@dataclass(frozen=True, slots=True)
class PublishedLog:
    """A snapshot of the log from the time it was opened; what is published later is for the next run."""

    control: LogControl
    folder: LogFolder
    manifest: Manifest
    reading: Reading | None = None
    """The registration that keeps sweeps from removing the snapshot's files; None for short reads."""

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
    def end(self) -> int:
        """The last id of the log."""
        return self.manifest.end

    def waiting(self, position: int) -> Iterator[tuple[Binding, Sequence[LogFile]]]:
        """The published bindings beyond a position, oldest first, with the files that may hold messages of
        them."""
        for binding in self.control.bindings_after(position):
            if binding.t <= self.manifest.t:
                yield binding, self.manifest.files_of(binding)

    def last_ids(self, files: Iterable[LogFile], position: int, first_id: int = 0) -> dict[str, int]:
        """The last id from one up to a position, of every namespace in these files. A file has one: its
        topic."""
        found: dict[str, int] = {}
        with reading():
            for file in files:
                last_id = self.folder.last_id(file, first_id, position)
                if last_id is not None:
                    found[file.topic] = max(last_id, found.get(file.topic, last_id))
        return found


@contextmanager
def reading() -> Iterator[None]:
    """Turn every error of reading the log into ``LogUnreadable``, so that no target is blamed for it."""
    try:
        yield
    except (LogError, OSError, pa.ArrowException) as error:
        raise LogUnreadable(str(error)) from error


def read_messages(
    folder: LogFolder, part: Part, acknowledged: Collection[int], columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The messages of a part in id order, without acknowledged ones."""
    with reading():
        yield from _read(folder, part, acknowledged, columns)


def _read(
    folder: LogFolder, part: Part, acknowledged: Collection[int], columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    skipped = pa.array(sorted(acknowledged), pa.int64())
    # In one binding partitions come one after the other; in a file there may be other bindings too.
    for file in sorted(part.files, key=lambda file: (file.place, file.first_id)):
        for batch in folder.read_file(file, columns, *part.ids):
            kept = batch
            if len(skipped):
                kept = batch.filter(pc.invert(pc.is_in(batch.column("id"), value_set=skipped)))
            if kept.num_rows:
                yield kept
