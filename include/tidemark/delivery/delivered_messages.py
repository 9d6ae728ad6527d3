"""The messages in the log that a writer has finished, in id order or from the newest back.

Reads only as much as the caller consumes: the comparison after every delivery must not become slower as the
log grows.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidemark.delivery.published_log import PublishedLog, read_messages
from tidemark.delivery.writer import Part

FIRST_WINDOW, LARGEST_WINDOW, GROWTH = 1_024, 65_536, 8
MOST_LOOKED_BACK = 200_000
"""The most ids that are searched for the last message of every part of a target."""

Placing = Callable[[Mapping[str, Any]], int | None]
"""The part of a target that a message is written to; None for a message that is not written."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The messages of a log, without acknowledged ones."""

    log: PublishedLog
    acknowledged: Collection[int]

    def messages(self, first_id: int, last_id: int) -> Iterator[pa.RecordBatch]:
        """The messages of a range of ids, both ends included, in id order."""
        for binding, files in self.log.waiting(first_id - 1):
            if binding.base > last_id:
                break
            part = Part(binding, tuple(files), first_id=first_id, last_id=last_id)
            yield from read_messages(self.log.folder, part, self.acknowledged)

    def newest_first(self, position: int, most: int = MOST_LOOKED_BACK) -> Iterator[dict[str, Any]]:
        """The messages at or below a position, newest first, of the last ``most`` ids at most."""
        upper, width, floor = position, FIRST_WINDOW, max(0, position - most + 1)
        while upper >= floor:
            lower = max(floor, upper - width + 1)
            for batch in reversed(list(self.messages(lower, upper))):
                yield from reversed(batch.to_pylist())
            upper, width = lower - 1, min(width * GROWTH, LARGEST_WINDOW)


def last_places(finished: Finished, placing: Placing, parts: int, position: int) -> dict[int, int]:
    """The last id at or below a position that each part of a target should have.

    A part of which no message is among the last ``MOST_LOOKED_BACK`` ids is left out.
    """
    found: dict[int, int] = {}
    for message in finished.newest_first(position):
        if len(found) == parts:
            break
        place = placing(message)
        if place is not None:
            found.setdefault(place, int(message["id"]))
    return found
