"""The log's files: Parquet, one per binding and Kafka partition, sorted by id.

A file's bytes depend on nothing but its messages, so whoever captures the same binding again gets the same
digest.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.log.binding import Binding, Slice
from tidemark.log.errors import ManifestDamaged, RecordsMissing
from tidemark.log.folder import Folder
from tidemark.log.manifest import LogFile, Manifest, digest_of

ROWS_PER_GROUP = 65_536
"""Fixed, because the bytes of a file must not depend on the batches it was written from."""

LOG_SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("t", pa.int64(), nullable=False),
        pa.field("write_time", pa.int64(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("timestamp_type", pa.int32(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))),
        pa.field("namespace", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Captured:
    """What the capture of one binding produced: recorded before anything of it is visible."""

    t: int
    files: tuple[LogFile, ...]

    def to_bytes(self) -> bytes:
        """The record's content; the same capture gives the same bytes."""
        body = {"t": self.t, "files": [asdict(file) for file in self.files]}
        return (json.dumps(body, sort_keys=True) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Captured":
        """The record a file holds."""
        body = json.loads(data)
        return cls(body["t"], tuple(LogFile(**file) for file in body["files"]))


class LogFolder:
    """The folder of one pipeline's log: ``files/``, ``captured/`` and ``manifests/``."""

    def __init__(self, pipeline: str, root: str) -> None:
        self._folder = Folder(pipeline, root)

    def write_file(
        self, binding: Binding, slice_: Slice, batches: Iterable[pa.RecordBatch]
    ) -> LogFile | None:
        """Write one slice's messages, given in id order; None when the slice holds no message at all."""
        path = f"files/{binding.id_of(slice_.topic, slice_.partition, slice_.lower):020d}.parquet"
        with self._folder.stage() as staged:
            first, last, count = write_parquet(staged.sink, batches)
            if count == 0:
                return None
            self._refuse_strangers(binding, slice_, first, last, count)
            staged.settle(path)
        return LogFile(
            path=path,
            t=binding.t,
            topic=slice_.topic,
            partition=slice_.partition,
            first_id=first,
            last_id=last,
            count=count,
            bytes=staged.sink.size,
            digest=staged.sink.digest,
        )

    def _refuse_strangers(self, binding: Binding, s: Slice, first: int, last: int, count: int) -> None:
        """Refuse messages that the slice does not own, before the file has its final name."""
        lowest = binding.id_of(s.topic, s.partition, s.lower)
        if not lowest <= first <= last < lowest + s.width or count > s.width:
            found = f"capture found ids {first} to {last} ({count} records) instead of {lowest} and the next"
            raise RecordsMissing(self._folder.owner, s.topic, s.partition, s.lower, s.upper, found)

    def write_captured(self, captured: Captured) -> None:
        """Record what a capture produced."""
        self._folder.write_once(_captured_path(captured.t), captured.to_bytes())

    def read_captured(self, t: int) -> Captured | None:
        """What the capture of ``t`` produced; None when it has not come that far."""
        if not self._folder.exists(_captured_path(t)):
            return None
        return Captured.from_bytes(self._folder.read(_captured_path(t)))

    def write_manifest(self, manifest: Manifest) -> tuple[str, str]:
        """Write a manifest nobody names yet; its path and digest."""
        data = manifest.to_bytes()
        digest = digest_of(data)
        path = f"manifests/{manifest.t:020d}-{digest[:12]}.json"
        self._folder.write_once(path, data)
        return path, digest

    def read_manifest(self, path: str, digest: str) -> Manifest:
        """The manifest that the control row names."""
        data = self._folder.read(path)
        if digest_of(data) != digest:
            raise ManifestDamaged(self._folder.owner, self._folder.at(path), digest, digest_of(data))
        return Manifest.from_bytes(data)

    def verify(self, file: LogFile) -> None:
        """Refuse a file whose bytes are not the recorded ones."""
        self._folder.verify(file.path, file.digest)

    def read_file(self, file: LogFile, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The messages of one file in id order, a bounded number in memory. A damaged file is refused."""
        self.verify(file)
        with self._folder.open(file.path) as source, pq.ParquetFile(source) as parquet:
            yield from parquet.iter_batches(batch_size=8192, columns=columns)


def write_parquet(sink: object, batches: Iterable[pa.RecordBatch]) -> tuple[int, int, int]:
    """Write messages in id order; first id, last id and number of messages."""
    first = last = -1
    count = 0
    with pq.ParquetWriter(sink, LOG_SCHEMA, compression="zstd", write_statistics=["id", "offset"]) as writer:
        for group in _regrouped(batches):
            first = first if count else group["id"][0].as_py()
            last = group["id"][-1].as_py()
            count += group.num_rows
            writer.write_table(group, row_group_size=ROWS_PER_GROUP)
    return first, last, count


def _regrouped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The same rows in groups of a fixed size, however they arrived."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        while rows >= ROWS_PER_GROUP:
            table = pa.Table.from_batches(waiting, LOG_SCHEMA)
            yield table.slice(0, ROWS_PER_GROUP).combine_chunks()
            rest = table.slice(ROWS_PER_GROUP)
            waiting, rows = rest.to_batches(), rest.num_rows
    if rows:
        yield pa.Table.from_batches(waiting, LOG_SCHEMA).combine_chunks()


def _captured_path(t: int) -> str:
    return f"captured/{t:020d}.json"
