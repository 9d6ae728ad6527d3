"""Void corrections of the envelope ``oplog``: they make no rows.

Whether a correction is void depends on the newest valid operation of its object before it, in the same
partition of the same topic: on the rows before this part, and on the messages of the part. The rule itself is
``tidemark.operations.corrections.is_void``. Nothing here reads rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tidemark.collection.model.keys import Key
from tidemark.collection.model.row import CollectionRow
from tidemark.collection.model.rows import RowBatch
from tidemark.operations.corrections import Correction, is_void

Place = tuple[Key, str, int]
"""A key, a topic and a partition."""


@dataclass
class ValidOffsets:
    """The offset of the newest valid operation of each object, up to a place in one part.

    Attributes:
        topic_ids: Kafka's ids of the topics, by name.
        newest: The offsets, by key, topic and partition; None where there is no operation.
    """

    topic_ids: Mapping[str, str]
    newest: dict[Place, int | None] = field(default_factory=dict)

    def unknown(self, made: RowBatch) -> list[CollectionRow]:
        """The rows of the corrections that depend on operations before this part which are not known: of each
        object the first one. A correction that is void whatever came before depends on none."""
        if not made.corrections:
            return []
        seen, found = set(self.newest), list[CollectionRow]()
        for row in made.rows:
            place = row.key, row.topic, row.partition
            if place in seen:
                continue
            correction = made.corrections.get(row.message_id)
            if correction is None:
                seen.add(place)
            elif not self._is_void(row, correction, None):
                seen.add(place)
                found.append(row)
        return found

    def learn(self, rows: Iterable[CollectionRow], found: Mapping[Place, int]) -> None:
        """Take the newest valid offsets before this part, of the places of rows. Places that are not found
        have none."""
        for row in rows:
            place = row.key, row.topic, row.partition
            self.newest[place] = found.get(place)

    def without_void(self, made: RowBatch) -> RowBatch:
        """The batch without the rows of void corrections, which count as ignored. Batches come in id order,
        and everything ``unknown`` about them was learned."""
        corrections, newest = made.corrections, self.newest
        kept: list[CollectionRow] = []
        for row in made.rows:
            place = row.key, row.topic, row.partition
            correction = corrections.get(row.message_id)
            if correction is None or not self._is_void(row, correction, newest.get(place)):
                newest[place] = row.offset
                kept.append(row)
        ignored = made.ignored + len(made.rows) - len(kept)
        return replace(made, rows=kept, ignored=ignored)

    def _is_void(self, row: CollectionRow, correction: Correction, last_valid: int | None) -> bool:
        # A topic without an id is none that a correction can have named.
        return is_void(correction, row.offset, self.topic_ids.get(row.topic, ""), last_valid)
