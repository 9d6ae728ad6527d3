"""Statistics of a captured file: counted when the file is adopted, so that an audit need not read it again.

Deterministic like the file itself: no clock, no host name, no duration.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """One captured file, and the slice it was captured for. The fields are the columns of an audit's rules.

    Attributes:
        path: The file, relative to the log's folder.
        topic: The topic's name.
        partition: The partition's number.
        lower: The first offset of the slice.
        upper: The offset after the last one of the slice.
        first_owned_id: The first id of the slice.
        last_owned_id: The last id of the slice.
        first_id: The id of the first message.
        last_id: The id of the last message.
        first_offset: The offset of the first message.
        last_offset: The offset of the last message.
        rows_written: The number of messages in the file.
        disorder: The number of messages whose offset is not greater than that of the message before.
        misnumbered: The number of messages whose id does not belong to their offset.
        strangers: The number of messages whose namespace the pipeline does not declare.
        null_keys: The number of messages without a key.
        null_values: The number of messages without a value.
        first_timestamp: The lowest timestamp of a message, in ms.
        last_timestamp: The highest timestamp of a message, in ms.
        bytes: The size of the file.
        digest: The SHA-256 of its content.
    """

    path: str
    topic: str
    partition: int
    lower: int
    upper: int
    first_owned_id: int
    last_owned_id: int
    first_id: int
    last_id: int
    first_offset: int
    last_offset: int
    rows_written: int
    disorder: int
    misnumbered: int
    strangers: int
    null_keys: int
    null_values: int
    first_timestamp: int
    last_timestamp: int
    bytes: int
    digest: str

    @property
    def width(self) -> int:
        """The number of offsets of the slice, including those without a record."""
        return self.upper - self.lower
