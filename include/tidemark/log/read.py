"""Reads the log: messages by id, by binding or by namespace, in id order, with bounded memory.

A reader reads the manifest once and then immutable lists and files, so publication and compaction do not
affect it. A missing or damaged file raises an error before any of its messages is returned.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.log.errors import BeyondTheEnd, CompactedAway, NotPublished
from tidemark.log.files.merge import merged
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.model.manifest import ClosedPart, LogFile, Manifest


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected messages of a log."""

    manifest: Manifest
    root: str
    first_id: int
    last_id: int
    t: int | None = None
    namespaces: tuple[str, ...] = ()
    partly_compacted: bool = False
    """Whether some of the messages may have been compacted away."""

    @property
    def pipeline(self) -> str:
        """The pipeline's name."""
        return self.manifest.pipeline

    @property
    def files(self) -> Iterator[LogFile]:
        """The files that may have such messages, in the order of their first ids."""

        def may_have(one: ClosedPart | LogFile) -> bool:
            is_of_t = self.t is None or one.first_t <= self.t <= one.t
            return is_of_t and one.first_id <= self.last_id and one.last_id >= self.first_id

        return self.manifest.files_where(may_have)

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
    earlier = NOTHING_YET if t is None else manifest.last_id_before(t)
    lowest = max(first_id, 0, earlier + 1)
    partly = lowest < manifest.compacted_below
    if partly and not allow_compacted:
        raise CompactedAway(manifest.pipeline, first_id, manifest.compacted_below)
    return Selection(manifest, root, first_id, last, t, tuple(namespaces), partly)
