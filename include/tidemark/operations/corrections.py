"""Corrections: operations that a synchronisation sends, and when one of them is void.

A correction is void where the object has changed since the sender looked. One rule for everything that reads
operations: the collection's fold, the agents, and compaction.
"""

from typing import Annotated

import msgspec

from tidemark.operations.errors import BadOperation

CORRECTION_HEADER = "correction"
FARTHEST = 20_000
"""The most offsets between what the sender had read and its correction: agents look back no further."""

Offset = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Correction(msgspec.Struct, frozen=True, gc=False):
    """What the header of a correction says.

    Attributes:
        run: The synchronisation that sent it.
        looked_at: The first offset of the partition that the sender had not read.
        topic_id: Kafka's id of the topic that the sender had read, as bindings have it: a UUID.
    """

    run: str
    looked_at: Offset
    topic_id: str

    def to_header(self) -> bytes:
        """The value of the header."""
        return _encode(self)

    @classmethod
    def from_header(cls, text: bytes | None) -> "Correction":
        """The correction in a header; raises ``BadOperation``."""
        try:
            return _decode(text or b"")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise BadOperation(f"its header `{CORRECTION_HEADER}` cannot be read") from None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Correction).decode


def is_void(correction: Correction, offset: int, topic_id: str, last_valid: int | None) -> bool:
    """Whether a correction changes nothing.

    Args:
        correction: The correction.
        offset: Its offset.
        topic_id: Kafka's id of the topic it was read from.
        last_valid: The offset of the newest valid operation of the same object before it, in the same
            partition under the same topic id; None where there is none. It may be at or above the
            correction's own offset where Kafka has lost the end of the partition: it does not count then.
    """
    if correction.topic_id != topic_id or offset - correction.looked_at > FARTHEST:
        return True
    return last_valid is not None and correction.looked_at <= last_valid < offset
