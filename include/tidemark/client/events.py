"""The public event types of a journal: ``Event`` to append, ``JournalEvent`` as it was read.

An event read from Kafka equals the same event read from Cassandra. JSON is stored as canonical text, so no
digit is lost; ``JournalEvent.payload`` parses it. Connects to nothing.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from tidemark.client.errors import BadEvent
from tidemark.journal.action import Append
from tidemark.journal.codec.json_text import LONG_MAX, canonical_text, parse
from tidemark.journal.codec.payload import decode
from tidemark.journal.errors import Undecodable
from tidemark.journal.events import EncodedEvent, PayloadType, record_metadata

_CONTENT: Mapping[str | None, type] = {None: type(None), "json": str, "text": str, "binary": bytes}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Event:
    """An event to append. Use ``json``, ``json_text``, ``text``, ``binary`` or ``empty`` to create one.

    The event is validated when it is created. An invalid field raises ``BadEvent``, a ``ValueError``.

    Attributes:
        seq_nr: The sequence number, from 1 to 2⁶³ − 1.
        payload_type: ``json``, ``text`` or ``binary``; None for an event without a payload.
        content: The payload: JSON text, stored in canonical form; text; bytes; None without a payload.
        tags: The event's tags, without repetitions, in the order given.
    """

    seq_nr: int
    payload_type: PayloadType | None = None
    content: str | bytes | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if type(self.seq_nr) is not int or not 1 <= self.seq_nr <= LONG_MAX:
            raise BadEvent(self.seq_nr, f"its number has to be from 1 to {LONG_MAX}")
        wanted = _CONTENT.get(self.payload_type)
        if wanted is None or not isinstance(self.content, wanted):
            problem = f"{type(self.content).__name__} cannot be its {self.payload_type} payload"
            raise BadEvent(self.seq_nr, problem)
        tags = self.tags
        if isinstance(tags, str) or not all(isinstance(tag, str) for tag in tags):
            raise BadEvent(self.seq_nr, "its tags have to be a list of texts")
        try:
            for tag in tags:
                tag.encode()
            if self.payload_type == "text" and isinstance(self.content, str):
                self.content.encode()
        except UnicodeEncodeError as error:
            raise BadEvent(self.seq_nr, f"UTF-8 cannot hold its text: {error.reason}") from None
        object.__setattr__(self, "tags", tuple(dict.fromkeys(tags)))
        if self.payload_type == "json" and isinstance(self.content, str):
            object.__setattr__(self, "content", self._canonical(self.content))

    def _canonical(self, text: str) -> str:
        try:
            canonical = as_json(text)
        except ValueError as error:
            raise BadEvent(self.seq_nr, f"its payload is {error}") from None
        if canonical == "null":
            raise BadEvent(self.seq_nr, "null as payload cannot be told from no payload; make it Event.empty")
        return canonical

    @classmethod
    def json(cls, seq_nr: int, value: Any, tags: Iterable[str] = ()) -> Self:
        """An event with a JSON payload, from a Python value.

        Args:
            seq_nr: The sequence number, from 1 to 2⁶³ − 1.
            value: Any value that ``json.dumps`` accepts, except None. NaN and infinity are refused.
            tags: The event's tags; repetitions are dropped.

        Returns:
            The event.

        Raises:
            BadEvent: An argument is invalid.
        """
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise BadEvent(seq_nr, f"its payload cannot be JSON: {error}") from None
        return cls(seq_nr, "json", text, _listed(seq_nr, tags))

    @classmethod
    def json_text(cls, seq_nr: int, text: str, tags: Iterable[str] = ()) -> Self:
        """An event with a JSON payload, from a JSON document. Numbers keep up to 34 digits.

        Args:
            seq_nr: The sequence number, from 1 to 2⁶³ − 1.
            text: The JSON document; ``null`` is refused.
            tags: The event's tags; repetitions are dropped.

        Returns:
            The event.

        Raises:
            BadEvent: An argument is invalid.
        """
        return cls(seq_nr, "json", text, _listed(seq_nr, tags))

    @classmethod
    def text(cls, seq_nr: int, text: str, tags: Iterable[str] = ()) -> Self:
        """An event with a text payload.

        Args:
            seq_nr: The sequence number, from 1 to 2⁶³ − 1.
            text: The payload; UTF-8 must be able to encode it.
            tags: The event's tags; repetitions are dropped.

        Returns:
            The event.

        Raises:
            BadEvent: An argument is invalid.
        """
        return cls(seq_nr, "text", text, _listed(seq_nr, tags))

    @classmethod
    def binary(cls, seq_nr: int, data: bytes, tags: Iterable[str] = ()) -> Self:
        """An event with a binary payload.

        Args:
            seq_nr: The sequence number, from 1 to 2⁶³ − 1.
            data: The payload.
            tags: The event's tags; repetitions are dropped.

        Returns:
            The event.

        Raises:
            BadEvent: An argument is invalid.
        """
        return cls(seq_nr, "binary", data, _listed(seq_nr, tags))

    @classmethod
    def empty(cls, seq_nr: int, tags: Iterable[str] = ()) -> Self:
        """An event without a payload.

        Args:
            seq_nr: The sequence number, from 1 to 2⁶³ − 1.
            tags: The event's tags; repetitions are dropped.

        Returns:
            The event.

        Raises:
            BadEvent: An argument is invalid.
        """
        return cls(seq_nr, None, None, _listed(seq_nr, tags))

    def encoded(self) -> EncodedEvent:
        """The event in the form that the codecs encode."""
        return EncodedEvent(self.seq_nr, self.tags, self.payload_type, self.content)


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of an event's record. All events of one append have the same.

    Attributes:
        header: The JSON value passed to ``append`` as ``metadata``; None without one.
        payload: The JSON value passed to ``append`` as ``payload_metadata``; None without one.
        expire_after: The entity's time to live from this append on, such as ``30 days``; None for no expiry.
    """

    header: Any = None
    payload: Any = None
    expire_after: str | None = None


NO_METADATA = Metadata()


@dataclass(frozen=True, slots=True)
class JournalEvent:
    """An event that was read from a journal, with the Kafka record that it came in.

    Attributes:
        seq_nr: The sequence number.
        tags: The event's tags.
        payload_type: ``json``, ``text`` or ``binary``; None for an event without a payload.
        content: The payload: canonical JSON text, text or bytes; None without a payload.
        metadata: The metadata of the record.
        headers: The Kafka headers of the record other than ``journal.action``.
        timestamp: The record's timestamp in UTC, from the producer's clock, to the millisecond.
        partition: The record's partition.
        offset: The record's offset.
        origin: The name of the sender; None where the record has none.
        version: The name and version of the sender's client library; None where the record has none.
    """

    seq_nr: int
    tags: frozenset[str]
    payload_type: PayloadType | None
    content: str | bytes | None
    metadata: Metadata
    headers: Mapping[str, str]
    timestamp: datetime
    partition: int
    offset: int
    origin: str | None = None
    version: str | None = None

    @property
    def payload(self) -> Any:
        """The payload as a Python value: the parsed JSON, the text or the bytes; None without a payload.

        JSON numbers that a float cannot represent exactly are ``Decimal``.
        """
        if self.payload_type == "json" and isinstance(self.content, str):
            return parse(self.content.encode())
        return self.content


def as_json(text: str) -> str:
    """The canonical form of a JSON document. Raises ``ValueError`` where the text is not valid JSON."""
    try:
        return canonical_text(text.encode())
    except UnicodeEncodeError as error:
        raise ValueError(f"not JSON: {error.reason}") from None
    except Undecodable as error:
        raise ValueError(error.reason) from None


def events_of_append(action: Append, partition: int, offset: int) -> Iterator[JournalEvent]:
    """The events of an append in Kafka. Raises ``Undecodable`` before it yields the first event."""
    found = decode(action.form, action.payload)
    metadata = read_metadata_column(record_metadata(action.metadata, found.metadata))
    timestamp = _EPOCH + timedelta(milliseconds=action.timestamp)
    for event in found.events:
        yield JournalEvent(
            event.seq_nr,
            frozenset(event.tags),
            event.payload_type,
            event.payload,
            metadata,
            action.headers,
            timestamp,
            partition,
            offset,
            action.origin,
            action.version,
        )


def event_of_row(row: Any) -> JournalEvent:
    """The event in a row of the table ``journal``."""
    payload_type, content = _payload_of_row(row.payload_type, row.payload_txt, row.payload_bin)
    return JournalEvent(
        row.seq_nr,
        frozenset(row.tags or ()),
        payload_type,
        content,
        read_metadata_column(row.metadata),
        dict(row.headers or {}),
        # Five times faster than ``replace``, and done for every row.
        datetime.combine(row.timestamp, row.timestamp.time(), UTC),
        row.partition,
        row.offset,
        row.origin,
        row.version,
    )


def _payload_of_row(
    kind: str | None, text: str | None, data: bytes | None
) -> tuple[PayloadType | None, str | bytes | None]:
    if kind is None:
        return None, None
    if text is not None and kind in ("json", "text"):
        return ("json" if kind == "json" else "text"), text
    return "binary", data or b""


def read_metadata_column(text: str | None) -> Metadata:
    """Parses the column ``metadata``: header and payload, or, from old writers, the header only."""
    if text is None or text in ("{}", '{"header":{},"payload":{}}'):
        return NO_METADATA
    value = parse(text.encode())
    if not isinstance(value, dict):
        return NO_METADATA
    header, payload = _object(value.get("header")), _object(value.get("payload"))
    if not header and not payload:
        return Metadata(header=value.get("data"))
    return Metadata(header.get("data"), payload.get("data"), payload.get("expireAfter"))


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _listed(seq_nr: int, tags: Iterable[str]) -> Any:
    """The tags as a tuple. A string is returned as it is, so that validation refuses it."""
    if not isinstance(tags, Iterable):
        raise BadEvent(seq_nr, "its tags have to be a list of texts")
    return tags if isinstance(tags, str) else tuple(tags)
