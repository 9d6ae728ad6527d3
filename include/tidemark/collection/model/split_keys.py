"""The rule that a key of a topic comes from one partition.

Kafka orders the messages of a partition, and no others. A key that turns up in two partitions of a topic has
no order between its messages, so which of them is its state would be arbitrary. Keys of different topics are
not compared. Rows of the envelope ``append`` have keys of their own; this rule is not for them.
"""

from collections.abc import Iterable, Mapping

from tidemark.collection.model.keys import Key
from tidemark.collection.model.row import CollectionRow
from tidemark.collection.model.rows import BadRow

KeyPlaces = Mapping[tuple[Key, str], int]
"""The partition that each key was found in, by key and topic."""


def places_of(rows: Iterable[CollectionRow], known: KeyPlaces | None = None) -> dict[tuple[Key, str], int]:
    """``known`` with the places of further rows. The first place of a key stays."""
    places = dict(known or {})
    for row in rows:
        places.setdefault((row.key, row.topic), row.partition)
    return places


def first_split(rows: Iterable[CollectionRow], known: KeyPlaces) -> BadRow | None:
    """The message with the lowest id whose key was in another partition of its topic before; None for none.

    Args:
        rows: The rows of one or more batches, in id order.
        known: Where keys were found before. It may lack keys that are not among the rows.
    """
    found: dict[tuple[Key, str], int] = {}
    for row in rows:
        place = row.key, row.topic
        before = known.get(place)
        if before is None:
            before = found.setdefault(place, row.partition)
        if before != row.partition:
            problem = (
                f"its key was in partition {before} of {row.topic} before, and two partitions have no order "
                "between their messages. Send all messages of a key to one partition; those that are in "
                "another one already can be acknowledged"
            )
            return BadRow(row.message_id, row.topic, row.partition, row.offset, problem)
    return None
