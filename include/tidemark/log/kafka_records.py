"""The records of bound slices, read from Kafka and written to a staging area: one Parquet file a slice.

Used by the process that captures a small binding, and in Spark's tasks for a larger one. The files are the
same: row groups depend on a slice's records alone. A file gets its name when it is complete, so an attempt
that is repeated, or goes on beside another one, replaces a file by an equal one. Reads exactly the offsets
that it is given.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.connections import KafkaConnection
from tidemark.kafka.consumer import OffsetRange, PartitionReader, ReadRecord, RecordFields
from tidemark.log.files.folder import Folder
from tidemark.log.files.parquet import LOG_SCHEMA, ROWS_PER_GROUP, SUFFIX, open_writer
from tidemark.log.model.binding import Binding, Slice

PATIENCE = 30.0
"""Seconds without any record after which a read fails."""
GROUP_BYTES = 8 * 2**20
"""The keys and values of a row group: what a slice keeps in memory."""
SLICES_AT_ONCE = 8
"""How many slices are read at once: each keeps a row group in memory, and what is fetched ahead."""
FETCHED_AHEAD = 8 * 2**10
"""Kilobytes that the client fetches ahead for a slice."""
_HEADERS = LOG_SCHEMA.field("headers").type.value_type


class RecordReader:
    """Reads records through one client that stays connected. Not thread-safe."""

    def __init__(self, connection: KafkaConnection, isolation: str, patience: float = PATIENCE) -> None:
        self._connection, self._isolation, self._patience = connection, isolation, patience
        self._client: PartitionReader | None = None

    def write_records(self, binding: Binding, slices: Sequence[Slice], area: str) -> int:
        """Write the records of the slices, one Parquet file each; see ``CaptureEngine.write_records``."""
        groups = (slices[start : start + SLICES_AT_ONCE] for start in range(0, len(slices), SLICES_AT_ONCE))
        return sum(write_slices(binding, group, area, self._read(group)) for group in groups)

    def _read(self, slices: Sequence[Slice]) -> "Iterator[tuple[Slice, ReadRecord]]":
        if self._client is None:
            self._client = PartitionReader(
                self._connection,
                "tidemark-capture",
                self._patience,
                isolation=self._isolation,
                fetched_ahead=FETCHED_AHEAD,
            )
        wanted = {OffsetRange(s.topic, s.partition, s.lower, s.upper): s for s in slices}
        try:
            for place, record in self._client.ranges(list(wanted)):
                yield wanted[place], record
        except BaseException:
            self.close()  # the next read begins with a client that has no assignment
            raise

    def close(self) -> None:
        """Disconnect."""
        client, self._client = self._client, None
        if client is not None:
            client.close()


def write_slices(
    binding: Binding, slices: Sequence[Slice], area: str, records: Iterable[tuple[Slice, ReadRecord]]
) -> int:
    """Write records, which come in the order of each slice, into one file a slice; returns their number.

    A slice without records gets no file.
    """
    folder, files, count = Folder(binding.run_id, area), dict[Slice, _SliceFile](), 0
    with ExitStack() as opened:
        last, file = None, None
        for slice_, record in records:
            if file is None or slice_ is not last:  # a partition's records come in runs
                if slice_ not in files:
                    files[slice_] = _SliceFile(binding, slice_, folder, opened)
                last, file = slice_, files[slice_]
            file.add(record)
            count += 1
        for file in files.values():
            file.flush()
    for file in files.values():
        file.name()
    return count


class _SliceFile:
    """The file of one slice."""

    def __init__(self, binding: Binding, slice_: Slice, folder: Folder, opened: ExitStack) -> None:
        self._binding, self._slice, self._folder = binding, slice_, folder
        self._final = f"{binding.id_of(slice_.topic, slice_.partition, slice_.lower):020d}{SUFFIX}"
        self._path = f"{uuid4().hex}.writing"
        self._writer: pq.ParquetWriter = opened.enter_context(
            open_writer(opened.enter_context(folder.create(self._path)))
        )
        self._waiting: list[tuple[int, RecordFields]] = []
        self._bytes = 0

    def add(self, record: ReadRecord) -> None:
        """Add the next record."""
        fields = record.fields()
        self._waiting.append((record.offset, fields))
        self._bytes += len(fields.value or b"") + len(fields.key or b"")
        if self._bytes >= GROUP_BYTES or len(self._waiting) >= ROWS_PER_GROUP:
            self.flush()

    def flush(self) -> None:
        """Write what waits as one row group."""
        if self._waiting:
            rows = log_rows(self._binding, self._slice, self._waiting)
            self._writer.write_table(pa.Table.from_batches([rows]), row_group_size=ROWS_PER_GROUP)
            self._waiting, self._bytes = [], 0

    def name(self) -> None:
        """Give the file, which is closed, its name."""
        self._folder.rename(self._path, self._final)


def log_rows(binding: Binding, s: Slice, records: Sequence[tuple[int, RecordFields]]) -> pa.RecordBatch:
    """The records of one slice, with their offsets, as rows of the log."""
    count, shift = len(records), binding.shifts[s.topic, s.partition]
    offsets = np.fromiter((offset for offset, _ in records), np.int64, count)
    ids = offsets + shift
    fields = [fields for _, fields in records]
    columns = {
        "id": ids,
        "t": pa.repeat(binding.t, count),
        "write_time": ids + (binding.t - binding.base),
        "topic": pa.repeat(s.topic, count),
        "partition": pa.repeat(s.partition, count),
        "offset": offsets,
        "timestamp": [one.timestamp for one in fields],
        # As the brokers number them: −1 for none, 0 for the producer's time, 1 for the broker's.
        "timestamp_type": [one.timestamp_type - 1 for one in fields],
        "key": [one.key for one in fields],
        "value": [one.value for one in fields],
        "headers": _headers([one.headers for one in fields]),
        "namespace": pa.repeat(s.topic, count),
    }
    arrays = [_array(columns[field.name], field.type) for field in LOG_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=LOG_SCHEMA)


def _array(column: pa.Array | np.ndarray | list[object], wanted: pa.DataType) -> pa.Array:
    return column.cast(wanted) if isinstance(column, pa.Array) else pa.array(column, wanted)


def _headers(records: Sequence[Sequence[tuple[str, bytes | None]] | None]) -> pa.Array:
    """The headers of every record, null for a record without: built by column, because a dictionary a header
    takes most of a capture's time."""
    ends = np.cumsum([0, *(len(headers) if headers else 0 for headers in records)], dtype=np.int32)
    every = [header for headers in records if headers for header in headers]
    names, values = ([name for name, _ in every], [value for _, value in every])
    structs = pa.StructArray.from_arrays(
        [pa.array(names, _HEADERS.field("name").type), pa.array(values, _HEADERS.field("value").type)],
        fields=list(_HEADERS),
    )
    absent = pa.array([not headers for headers in records], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(ends), structs, mask=absent)
