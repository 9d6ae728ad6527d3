"""What a capture knows of each file it wrote: counted when it took the file over, so that an audit reads
nothing again.

Deterministic like the file itself: no clock, no host name, no duration.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """One captured file, next to what its binding asked for. The columns an audit's rules speak of."""

    path: str
    topic: str
    partition: int
    lower: int
    """The first offset that was to be read."""
    upper: int
    """The offset after the last one that was to be read."""
    first_owned_id: int
    last_owned_id: int
    first_id: int
    last_id: int
    first_offset: int
    last_offset: int
    rows_written: int
    """Messages that are in the file."""
    disorder: int
    """Messages whose offset is not greater than the one before."""
    misnumbered: int
    """Messages whose id is not the one their offset has in the binding."""
    strangers: int
    """Messages whose namespace the pipeline does not declare."""
    null_keys: int
    null_values: int
    first_timestamp: int
    last_timestamp: int
    bytes: int
    digest: str

    @property
    def width(self) -> int:
        """How many offsets were to be read, whether a record has them or not."""
        return self.upper - self.lower
