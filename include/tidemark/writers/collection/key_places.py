"""The rule that a key of a topic comes from one partition, over the chunks of one part.

A key's first partition is that of its rows before the binding, or else that of its first message in the
binding. Rows of later bindings do not count, so a binding that is delivered again is judged as it was the
first time. Keys that begin in this part are reported: no task sees what another one is about to write.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from tidemark.collection.model.keys import Key
from tidemark.collection.model.row import CollectionRow, key_bytes
from tidemark.collection.model.rows import BadRow
from tidemark.collection.model.split_keys import first_split, places_of
from tidemark.collection.tables.key_origins import Origins
from tidemark.delivery.split_entities import Begun, begun
from tidemark.delivery.writer import Part


class ReadsOrigins(Protocol):
    """Where keys came from: see ``CollectionTarget.origins``."""

    def origins(self, t: int, keys: Iterable[Key]) -> Origins:
        """Where keys came from before a time."""


class KeyPlaces:
    """The partitions of the keys of one part.

    Args:
        target: The tables.
        part: The part.
        first_ids: The first ids of those topics of the part that were created again under their names: what
            had a key before does not count.
    """

    def __init__(self, target: ReadsOrigins, part: Part, first_ids: Mapping[str, int]) -> None:
        self._target, self._part, self._first_ids = target, part, first_ids
        self._known: dict[tuple[Key, str], int] = {}
        self._begun: dict[tuple[str, int], list[Key]] = {}

    def first_split(self, rows: Sequence[CollectionRow]) -> BadRow | None:
        """The message with the lowest id whose key was in another partition before; the rows are in id
        order."""
        first: dict[tuple[Key, str], CollectionRow] = {}
        for row in rows:
            place = row.key, row.topic
            if place not in self._known:
                first.setdefault(place, row)
        if first:
            found = self._target.origins(self._part.binding.t, {key for key, _ in first})
            for place, row in first.items():
                origin = found.get(place)
                since = self._first_ids.get(row.topic, 0)
                if origin is not None and since <= origin.message_id < row.message_id:
                    self._known[place] = origin.partition
                else:
                    self._begun.setdefault((row.topic, row.partition), []).append(row.key)
        bad = first_split(rows, self._known)
        self._known = places_of(first.values(), self._known)
        return bad

    @property
    def begun(self) -> tuple[Begun, ...]:
        """The keys that begin in this part, where another part of the binding may begin them too."""
        partitions: dict[str, int] = {}
        for one in self._part.binding.slices:
            partitions[one.topic] = partitions.get(one.topic, 0) + 1
        if not self._part.is_whole:
            return ()
        return tuple(
            report
            for (topic, partition), keys in sorted(self._begun.items())
            if partitions.get(topic, 0) > 1
            for report in begun(topic, partition, (key_bytes(key).hex() for key in keys))
        )
