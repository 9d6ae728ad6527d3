"""The records of a small binding, read from Kafka and written to a staging area in this process.

The same messages as Spark writes, with the same columns; the bytes of the files differ, so a binding itself
says which of the two captures it (``CapturePlace``). Reads exactly the offsets that it is given.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.connections import KafkaConnection
from tidemark.kafka.consumer import OffsetRange, PartitionReader, ReadRecord
from tidemark.log.files.folder import Folder
from tidemark.log.files.parquet import LOG_SCHEMA, ROWS_PER_GROUP, SUFFIX, open_writer
from tidemark.log.model.binding import Binding, Slice

PATIENCE = 30.0
"""Seconds without any record after which a read fails."""
GROUP_BYTES = 8 * 2**20
"""The keys and values of a row group: what a slice keeps in memory."""
NO_TIMESTAMP = -1


class RecordReader:
    """Reads records through one client that stays connected. Not thread-safe."""

    def __init__(self, connection: KafkaConnection, isolation: str, patience: float = PATIENCE) -> None:
        self._connection, self._isolation, self._patience = connection, isolation, patience
        self._client: PartitionReader | None = None

    def write_records(self, binding: Binding, slices: Sequence[Slice], area: str) -> int:
        """Write the records of the slices, one Parquet file each; see ``CaptureEngine.write_records``."""
        wanted = {OffsetRange(s.topic, s.partition, s.lower, s.upper): s for s in slices}
        with ExitStack() as open_files:
            folder, files, count = Folder(binding.run_id, area), dict[Slice, _SliceFile](), 0
            for place, record in self._read(list(wanted)):
                s = wanted[place]
                if s not in files:
                    sink = open_files.enter_context(folder.create(f"part-{len(files)}{SUFFIX}"))
                    files[s] = _SliceFile(binding, s, open_files.enter_context(open_writer(sink)))
                files[s].add(record)
                count += 1
            for file in files.values():
                file.flush()
        return count

    def _read(self, wanted: Sequence[OffsetRange]) -> Iterator[tuple[OffsetRange, ReadRecord]]:
        if self._client is None:
            self._client = PartitionReader(
                self._connection, "tidemark-capture", self._patience, isolation=self._isolation
            )
        try:
            yield from self._client.ranges(wanted)
        except BaseException:
            self.close()  # the next read begins with a client that has no assignment
            raise

    def close(self) -> None:
        """Disconnect."""
        client, self._client = self._client, None
        if client is not None:
            client.close()


class _SliceFile:
    """The file of one slice. Its row groups depend on its records alone, so its bytes do too."""

    def __init__(self, binding: Binding, slice_: Slice, writer: pq.ParquetWriter) -> None:
        self._binding, self._slice, self._writer = binding, slice_, writer
        self._waiting: list[ReadRecord] = []
        self._bytes = 0

    def add(self, record: ReadRecord) -> None:
        """Add the next record."""
        self._waiting.append(record)
        self._bytes += len(record.value or b"") + len(record.key or b"")
        if self._bytes >= GROUP_BYTES or len(self._waiting) >= ROWS_PER_GROUP:
            self.flush()

    def flush(self) -> None:
        """Write what waits as one row group."""
        if self._waiting:
            rows = log_rows(self._binding, self._slice, self._waiting)
            self._writer.write_table(pa.Table.from_batches([rows]), row_group_size=ROWS_PER_GROUP)
            self._waiting, self._bytes = [], 0


def log_rows(binding: Binding, s: Slice, records: Sequence[ReadRecord]) -> pa.RecordBatch:
    """The records of one slice with the log's columns."""
    count, shift = len(records), binding.shifts[s.topic, s.partition]
    ids = [record.offset + shift for record in records]
    stamps = [record.timestamp for record in records]
    columns = {
        "id": ids,
        "t": [binding.t] * count,
        "write_time": [id_ + binding.t - binding.base for id_ in ids],
        "topic": [s.topic] * count,
        "partition": [s.partition] * count,
        "offset": [record.offset for record in records],
        "timestamp": [NO_TIMESTAMP if stamp is None else stamp for stamp in stamps],
        # As the brokers number them: −1 for none, 0 for the producer's time, 1 for the broker's.
        "timestamp_type": [record.timestamp_type - 1 for record in records],
        "key": [record.key for record in records],
        "value": [record.value for record in records],
        "headers": [_headers(record) for record in records],
        "namespace": [s.topic] * count,
    }
    arrays = [pa.array(columns[field.name], field.type) for field in LOG_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=LOG_SCHEMA)


def _headers(record: ReadRecord) -> list[dict[str, str | bytes | None]] | None:
    return [{"name": name, "value": value} for name, value in record.headers] or None
