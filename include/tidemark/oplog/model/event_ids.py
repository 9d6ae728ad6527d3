"""Ids of events: where a client goes on. They are opaque to clients, URL-safe, and bounded in size.

===========================  ==========================================================================
``o1.<digest>.<vector>``     After an operation: the client's vector.
``r1.<digest>.<t>.<token>``  In a replication: the time of the rows, the last token (its rows may be
``.<bound>.<end>``           missing), which rows are wanted, and the vector that the stream goes on at.
``0``                        Everything, from the beginning.
up to 13 digits              Everything that has changed since that time, in milliseconds.
24 hexadecimal digits        An id of the original OpLog: it stands for its first 8 digits, in seconds.
===========================  ==========================================================================

The digest says which cluster, topic and filter an id belongs to: under another filter, objects would be
missed.
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from tidemark.errors import TidemarkError
from tidemark.oplog.model.stream_filter import StreamFilter
from tidemark.oplog.model.vector import LARGEST_OFFSET, Vector, read_vector, vector_text

LONGEST_ID = 16_384
"""The most characters of an id that is read."""
BEGINNING = -(2**63)
"""The token before the first row: no row has it."""

_TIME = re.compile(r"[0-9]{1,13}")
_ORIGINAL = re.compile(r"[0-9a-fA-F]{24}")
_DIGEST = re.compile(r"[A-Za-z0-9_-]{12}")
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_FULL, _SINCE, _VECTOR = "f", "m", "v"


class BadEventId(TidemarkError):
    """A text that is no id of an event; the text is the reason."""


@dataclass(frozen=True, slots=True)
class OperationId:
    """A place after an operation.

    Attributes:
        digest: Of the stream.
        vector: What the client has.
    """

    digest: str
    vector: Vector

    def __str__(self) -> str:
        return f"{operation_prefix(self.digest)}{vector_text(self.vector)}"


@dataclass(frozen=True, slots=True)
class WantedRows:
    """Which rows a replication sends. At most one of the two is set; none: all rows that are not deleted.

    Attributes:
        since: The first time, in ms, whose changes are wanted, deletes included.
        beyond: The offsets of partitions from which on changes are wanted, deletes included; None for a
            partition of which none are.
    """

    since: int | None = None
    beyond: tuple[int | None, ...] | None = None

    @property
    def is_full(self) -> bool:
        """Whether all objects are sent, which a client that begins needs."""
        return self.since is None and self.beyond is None

    def __str__(self) -> str:
        if self.since is not None:
            return f"{_SINCE}{self.since}"
        if self.beyond is not None:
            return _VECTOR + vector_text(0 if one is None else one + 1 for one in self.beyond)
        return _FULL

    @classmethod
    def read(cls, text: str) -> "WantedRows":
        """The rows that a text says; raises ``ValueError``."""
        if text == _FULL:
            return cls()
        if text.startswith(_SINCE) and _TIME.fullmatch(text[1:]):
            return cls(since=int(text[1:]))
        if text.startswith(_VECTOR):
            return cls(beyond=tuple(one - 1 if one else None for one in read_vector(text[1:])))
        raise ValueError("it says nothing about rows")


@dataclass(frozen=True, slots=True)
class ReplicationId:
    """A place in a replication.

    Attributes:
        digest: Of the stream.
        t: The time of the rows, in µs.
        token: The last token that was sent; the next replication begins with it. ``BEGINNING`` before the
            first row.
        rows: Which rows are sent.
        end: The vector that the stream goes on at: what the collection has at ``t``.
    """

    digest: str
    t: int
    token: int
    rows: WantedRows
    end: Vector

    def __str__(self) -> str:
        before, after = self.around_token
        return f"{before}{self.token}{after}"

    @property
    def around_token(self) -> tuple[str, str]:
        """The text before the token and after it: what all ids of one replication share."""
        return f"r1.{self.digest}.{self.t}.", f".{self.rows}.{vector_text(self.end)}"


@dataclass(frozen=True, slots=True)
class TimeId:
    """A time to begin at, in ms; 0: everything."""

    ms: int

    def __str__(self) -> str:
        return str(self.ms)


@dataclass(frozen=True, slots=True)
class OriginalId:
    """An id of the original OpLog."""

    text: str

    @property
    def fallback(self) -> TimeId:
        """The time in it."""
        return TimeId(int(self.text[:8], 16) * 1000)

    def __str__(self) -> str:
        return self.text


EventId = OperationId | ReplicationId | TimeId | OriginalId


def read_event_id(text: str) -> EventId:
    """The id that a client has sent. Raises ``BadEventId``."""
    if _TIME.fullmatch(text):
        return TimeId(int(text))
    if _ORIGINAL.fullmatch(text):
        return OriginalId(text)
    if len(text) <= LONGEST_ID:
        parts = text.split(".")
        try:
            if len(parts) == 3 and parts[0] == "o1":
                return OperationId(_digest(parts[1]), read_vector(parts[2]))
            if len(parts) == 6 and parts[0] == "r1":
                t, token = _number(parts[2], 0), _number(parts[3], BEGINNING)
                rows = WantedRows.read(parts[4])
                return ReplicationId(_digest(parts[1]), t, token, rows, read_vector(parts[5]))
        except ValueError:
            pass  # as any other text that is no id
    raise BadEventId(
        "The last event id is malformed. Nothing was sent. Send the id of the last event as it was received; "
        "or 0 for all objects; or a time in milliseconds for all that have changed since."
    )


def operation_prefix(digest: str) -> str:
    """What all ids after operations of one stream begin with."""
    return f"o1.{digest}."


def stream_digest(cluster_id: str, topic_id: str, filter_: StreamFilter) -> str:
    """What ids of a stream belong to, in 12 characters."""
    sets: Sequence[object] = (cluster_id, topic_id, *filter_.sets)
    hashed = blake2b(msgspec.json.encode(sets), digest_size=9).digest()
    return urlsafe_b64encode(hashed).decode()


def _digest(text: str) -> str:
    if not _DIGEST.fullmatch(text):
        raise ValueError("not a digest")
    return text


def _number(text: str, least: int) -> int:
    if not _NUMBER.fullmatch(text) or not least <= (found := int(text)) <= LARGEST_OFFSET:
        raise ValueError("not a number")
    return found
