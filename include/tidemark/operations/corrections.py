"""Corrections: operations that a synchronisation sends, and when one of them is void.

A correction is void where the object has changed since the sender looked. One rule for everything that reads
operations: the collection's fold, the agents, and compaction.
"""

import json
from dataclasses import dataclass

from tidemark.operations.errors import BadOperation

CORRECTION_HEADER = "correction"
FARTHEST = 20_000
"""The most offsets between what the sender had read and its correction: agents look back no further."""


@dataclass(frozen=True, slots=True)
class Correction:
    """What the header of a correction says.

    Attributes:
        run: The synchronisation that sent it.
        looked_at: The first offset of the partition that the sender had not read.
        topic_id: Kafka's id of the topic that the sender had read.
    """

    run: str
    looked_at: int
    topic_id: str

    def to_header(self) -> bytes:
        """The value of the header."""
        return json.dumps({"run": self.run, "looked_at": self.looked_at, "topic_id": self.topic_id}).encode()

    @classmethod
    def from_header(cls, text: bytes | None) -> "Correction":
        """The correction in a header; raises ``BadOperation``."""
        try:
            row = json.loads(text or b"")
            run, looked_at, topic_id = row["run"], row["looked_at"], row["topic_id"]
        except (ValueError, TypeError, KeyError):
            raise BadOperation(f"its header `{CORRECTION_HEADER}` cannot be read") from None
        if type(run) is not str or type(looked_at) is not int or type(topic_id) is not str or looked_at < 0:
            raise BadOperation(f"its header `{CORRECTION_HEADER}` cannot be read")
        return cls(run, looked_at, topic_id)


def is_void(correction: Correction, offset: int, topic_id: str, last_valid: int | None) -> bool:
    """Whether a correction changes nothing.

    Args:
        correction: The correction.
        offset: Its offset.
        topic_id: Kafka's id of the topic it was read from.
        last_valid: The offset of the newest valid operation of the same object before it, in the same
            partition under the same topic id; None where there is none.
    """
    if correction.topic_id != topic_id or offset - correction.looked_at > FARTHEST:
        return True
    return last_valid is not None and last_valid >= correction.looked_at
