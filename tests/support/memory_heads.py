"""Heads in memory, as the tables would give them."""

from collections.abc import Iterator, Sequence
from datetime import date

from tidemark.expiry.heads import EntityHead
from tidemark.journal.head import Head

DAY = date(2026, 11, 16)


def given_head(
    day: date | None = DAY, *, offset: int = 0, partition: int = 0, seq_nr: int = 1, segment: int = 0
) -> Head:
    """A head that expires on a day."""
    return Head(segment, partition, offset, 10_000, seq_nr, None, 0, 0, None, day)


class MemoryHeads:
    """What ``metajournal`` holds."""

    def __init__(self, *entities: EntityHead) -> None:
        self.entities = list(entities)
        self.asked: list[date] = []

    def expired_on(self, day: date) -> Iterator[EntityHead]:
        """See ``Heads.expired_on``."""
        self.asked.append(day)
        return iter([one for one in self.entities if one.head.expire_on == day])

    def of_entities(self, topic: str, keys: Sequence[str]) -> dict[str, Head]:
        """See ``Heads.of_entities``."""
        return {one.key: one.head for one in self.entities if one.topic == topic and one.key in keys}
