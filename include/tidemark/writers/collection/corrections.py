"""Which corrections of one part are void, with the rows that are in the tables before it.

Only rows of earlier messages are read, so a part that is delivered again, or computed without being written,
gets the same answer as at first, however its binding is cut. Rows of a topic that had the same name before do
not count: its offsets were others.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from tidemark.collection.model.keys import Key
from tidemark.collection.model.row import CollectionRow
from tidemark.collection.model.rows import RowBatch
from tidemark.collection.model.void_corrections import Place, ValidOffsets
from tidemark.collection.tables.key_origins import KeyVersion
from tidemark.delivery.writer import Part
from tidemark.writers.collection.errors import VersionsRemoved


class ReadsVersions(Protocol):
    """The rows of keys before and after a message: see ``CollectionTarget``."""

    def newest_before(self, t: int, first_id: int, keys: Iterable[Key]) -> Mapping[Key, KeyVersion]:
        """The newest rows before a message."""

    def replaced_since(self, t: int, ids: Mapping[Key, int]) -> frozenset[Key]:
        """The keys with a row after a message, and none of the message."""


class CorrectionsOfPart:
    """The corrections of one part. Batches come in id order.

    Args:
        name: The pipeline and the writer.
        target: The tables.
        part: The part.
        first_ids: The first ids of those topics of the part that were created again under their names.
        is_trial: Whether the rows of the part were written before, and are only computed now.
    """

    def __init__(
        self,
        name: tuple[str, str],
        target: ReadsVersions,
        part: Part,
        first_ids: Mapping[str, int],
        *,
        is_trial: bool,
    ) -> None:
        self._name, self._target, self._part, self._is_trial = name, target, part, is_trial
        self._first_ids = first_ids
        self._valid = ValidOffsets(part.binding.topic_ids)

    def without_void(self, made: RowBatch) -> RowBatch:
        """The batch without the rows of void corrections."""
        if rows := self._valid.unknown(made):
            self._valid.learn(rows, self._read(rows))
        return self._valid.without_void(made)

    def _read(self, rows: Sequence[CollectionRow]) -> Mapping[Place, int]:
        t, first_id = self._part.binding.t, self._part.ids[0]
        versions = self._target.newest_before(t, first_id, {row.key for row in rows})
        if self._is_trial:
            self._refuse_removed({row.key: row.message_id for row in rows if row.key not in versions})
        found: dict[Place, int] = {}
        for row in rows:
            version = versions.get(row.key)
            if version and self._is_same(row, version):
                found[row.key, row.topic, row.partition] = version.offset
        return found

    def _is_same(self, row: CollectionRow, version: KeyVersion) -> bool:
        """Whether the offsets of a row and of an earlier one can be compared."""
        is_same_partition = (version.topic, version.partition) == (row.topic, row.partition)
        return is_same_partition and version.message_id >= self._first_ids.get(row.topic, 0)

    def _refuse_removed(self, ids: Mapping[Key, int]) -> None:
        """Raise ``VersionsRemoved`` where an earlier row was there once, and may have decided."""
        if ids and (gone := self._target.replaced_since(self._part.binding.t, ids)):
            raise VersionsRemoved(*self._name, self._part.binding.t, min(ids[key] for key in gone))
