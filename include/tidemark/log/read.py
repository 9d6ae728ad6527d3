"""Reads the log: messages by id, by binding or by namespace, in id order, with bounded memory.

A reader reads the manifest once and then immutable files, so publication and compaction do not affect it. A
missing or damaged file raises an error before any of its messages is returned.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.log.errors import BeyondTheEnd, CompactedAway, NotPublished
from tidemark.log.files.merge import merged
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.manifest import LogFile, Manifest


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected messages of a log, and the files that hold them."""

    pipeline: str
    root: str
    files: tuple[LogFile, ...]
    first_id: int
    last_id: int
    t: int | None = None
    namespaces: tuple[str, ...] = ()
    partly_compacted: bool = False
    """Whether some of the messages may have been compacted away."""

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The messages in id order, with all columns or only ``columns``.

        Every file is verified before its first message is returned.
        """
        wanted = None if columns is None else sorted({*columns, "id", "t", "namespace"})
        folder = LogFolder(self.pipeline, self.root)

        def read(file: LogFile) -> Iterator[pa.RecordBatch]:
            for batch in folder.read_file(file, wanted, self.first_id, self.last_id):
                yield self._choose(batch)

        for batch in merged(self.files, read):
            yield batch if columns is None else batch.select(list(columns))

    def _choose(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        chosen = batch
        if self.t is not None:
            chosen = chosen.filter(pc.equal(chosen.column("t"), self.t))
        if self.namespaces:
            names = pa.array(self.namespaces, pa.string())
            chosen = chosen.filter(pc.is_in(chosen.column("namespace"), value_set=names))
        return chosen


def select(
    manifest: Manifest,
    root: str,
    *,
    first_id: int = 0,
    last_id: int | None = None,
    t: int | None = None,
    namespaces: Sequence[str] = (),
    allow_compacted: bool = False,
) -> Selection:
    """Select messages of a log by id range, binding and namespaces; the conditions are combined with *and*.

    ``first_id`` may be any id up to the end plus one, also a hole; ``last_id`` is included.
    Raises ``NotPublished`` for a binding ``t`` beyond the log, ``BeyondTheEnd`` for a ``first_id`` beyond it,
    and ``CompactedAway`` for a selection that begins below ``compacted_below``, unless ``allow_compacted``.
    The first id of a binding is estimated from the files; a caller that knows it passes it as ``first_id``.
    """
    last = manifest.end if last_id is None else min(last_id, manifest.end)
    if t is not None and t > manifest.t:
        raise NotPublished(manifest.pipeline, t, manifest.t)
    if first_id > manifest.end + 1:
        raise BeyondTheEnd(manifest.pipeline, first_id, manifest.end)
    earlier = [file.last_id for file in manifest.files if t is not None and file.t < t]
    lowest = max([first_id, 0, *(last_id + 1 for last_id in earlier)])
    partly = lowest < manifest.compacted_below
    if partly and not allow_compacted:
        raise CompactedAway(manifest.pipeline, first_id, manifest.compacted_below)
    files = tuple(
        file
        for file in manifest.files
        if file.may_have(first_id, last) and (t is None or file.first_t <= t <= file.t)
    )
    return Selection(manifest.pipeline, root, files, first_id, last, t, tuple(namespaces), partly)
