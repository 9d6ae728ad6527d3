"""Makes actions from a caller's arguments, and validates them before anything is sent.

A record that a journal writer rejects stops the replication of its whole topic. So an append runs through the
writer's own steps first: it is encoded and decoded again, folded, and converted to Cassandra's cells. Does no
I/O; checks that need the entity's head are made elsewhere.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from tidemark.client.errors import BadInput
from tidemark.client.events import Event, as_json
from tidemark.client.tail.head_cache import CacheBounds
from tidemark.journal.action import Append, append
from tidemark.journal.codec.expire_after import ExpireAfter, read_expire_after
from tidemark.journal.codec.json_text import LONG_MAX
from tidemark.journal.codec.record import ACTION_HEADER, read_action, write_action
from tidemark.journal.effect import Message
from tidemark.journal.errors import JournalError, Undecodable, Unwritable
from tidemark.journal.events import Events, PayloadMetadata
from tidemark.journal.fold import MOST_SEGMENTS, Fold
from tidemark.journal.segments import row_segment
from tidemark.journal_tables.cells import longest_key, row_cells

MOST_OF_A_ROW = 15 * 2**20
"""Bytes. Cassandra takes 16 MiB at once by default, and needs some for itself. Kafka may take far more: its
own limit counts what is compressed."""
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


class Checks:
    """Validates actions on the entities of one topic. Every method raises ``BadInput``."""

    def __init__(self, topic: str) -> None:
        if not isinstance(topic, str) or not _TOPIC.fullmatch(topic) or topic in (".", ".."):
            shown = topic if isinstance(topic, str) else repr(topic)
            problem = "the name of a topic has 1 to 249 letters, digits, `.`, `_` or `-`."
            raise BadInput(f"{shown:.60}", None, problem)
        self._topic, self._longest = topic, longest_key(topic)

    def key(self, key: Any) -> str:
        """A valid key: UTF-8 text within Cassandra's limit. It may be empty."""
        if not isinstance(key, str):
            raise BadInput(self._topic, key, "a key is text.")
        self._utf8(key, key, "the key")
        if (size := len(key.encode())) > self._longest:
            problem = f"a key has {self._longest} bytes at most, with this topic, and this one has {size}."
            raise BadInput(self._topic, f"{key:.60}…", problem)
        return key

    def origin(self, origin: Any) -> str:
        """A valid sender's name."""
        if not isinstance(origin, str):
            raise BadInput(self._topic, None, f"origin is text, not {origin!r:.60}.")
        self._utf8(None, origin, "origin")
        return origin

    def next_number(self, key: str, expected_last: Any, events: Sequence[Event]) -> int:
        """A valid ``expected_last`` that precedes the events; 0 expects no entity."""
        if type(expected_last) is not int or not 0 <= expected_last < LONG_MAX:
            problem = f"`expected_last` is a number from 0 to {LONG_MAX - 1}, not {expected_last!r:.60}."
            raise BadInput(self._topic, key, problem)
        if events[0].seq_nr != expected_last + 1:
            problem = f"event {events[0].seq_nr} does not follow expected_last={expected_last}."
            raise BadInput(self._topic, key, problem)
        return expected_last

    def span(self, key: str, action: str, first: int, last: int, segment_size: int) -> None:
        """Refuses a delete or purge over more segments than a writer processes at once."""
        segments = row_segment(max(last, 1), segment_size) - row_segment(max(first, 1), segment_size) + 1
        if segments > MOST_SEGMENTS:
            raise BadInput(
                self._topic,
                key,
                f"the {action} reaches from event {first} to {last}, over {segments} segments of "
                f"{segment_size}, and {MOST_SEGMENTS} is the most that a writer does at once. Delete it in "
                "steps: its numbers jump.",
            )

    def number(self, key: str, value: Any, what: str) -> int:
        """A sequence number."""
        if type(value) is not int or not 1 <= value <= LONG_MAX:
            raise BadInput(self._topic, key, f"{what} is a number from 1 to {LONG_MAX}, not {value!r}.")
        return value

    def bounds(self, bounds: CacheBounds) -> CacheBounds:
        """Valid bounds of the cache."""
        for name, value in (("cache_bytes", bounds.size), ("cache_records", bounds.records)):
            if type(value) is not int or value < 0:
                raise BadInput(self._topic, None, f"`{name}` is a number from 0 on, not {value!r:.60}.")
        return bounds

    def headers(self, key: str, headers: Mapping[str, str] | None) -> dict[str, str]:
        """Valid additional headers."""
        found = dict(headers or {})
        for name, text in found.items():
            if not isinstance(name, str) or not isinstance(text, str):
                raise BadInput(self._topic, key, f"a header is text with a name, not {name!r}: {text!r}.")
            if name == ACTION_HEADER:
                raise BadInput(self._topic, key, f"the header {ACTION_HEADER} is not free.")
            self._utf8(key, name, "the name of a header")
            self._utf8(key, text, f"header {name}")
        return found

    def append(
        self,
        key: str,
        timestamp: int,
        events: Iterable[Event],
        *,
        origin: str | None,
        version: str | None,
        expire_after: str | timedelta | None,
        metadata: Any,
        payload_metadata: Any,
        headers: Mapping[str, str] | None,
    ) -> Append:
        """An append of these events; their numbers follow one another."""
        found = self.events(key, events)
        of_payload = PayloadMetadata(
            self.expire_after(key, expire_after), self._json(key, payload_metadata, "payload_metadata")
        )
        try:
            made = append(
                key,
                timestamp,
                Events(tuple(event.encoded() for event in found), of_payload),
                origin=origin,
                version=version,
                metadata=self._json(key, metadata, "metadata"),
                headers=self.headers(key, headers),
            )
            _rehearse(self._topic, made)
        except JournalError as error:
            raise BadInput(self._topic, key, f"{str(error).rstrip('.')}.") from None
        return made

    def events(self, key: str, events: Iterable[Event]) -> tuple[Event, ...]:
        """Events, at least one, whose numbers follow one another."""
        if isinstance(events, Event) or not isinstance(events, Iterable):
            raise BadInput(self._topic, key, f"events come as a list, not as {events!r:.60}.")
        found = tuple(events)
        if not found:
            raise BadInput(self._topic, key, "an append needs at least one event.")
        for place, event in enumerate(found):
            if not isinstance(event, Event):
                problem = f"an event is made by Event.json, text, binary or empty, not {event!r:.60}."
                raise BadInput(self._topic, key, problem)
            if event.seq_nr != found[0].seq_nr + place:
                wanted = found[0].seq_nr + place
                raise BadInput(self._topic, key, f"event {event.seq_nr} came where {wanted} should have.")
        return found

    def expire_after(self, key: str, value: str | timedelta | None) -> ExpireAfter | None:
        """A valid time to live of an entity; None for no limit."""
        if value is None:
            return None
        try:
            if isinstance(value, timedelta):
                found = ExpireAfter.of_nanos((value // timedelta(microseconds=1)) * 1000)
            elif isinstance(value, str):
                found = read_expire_after(value)
            else:
                raise ValueError(f"expire_after is {value!r}")
        except ValueError as error:
            problem = f"{error}. Give expire_after as text like `30 days`, or as a timedelta."
            raise BadInput(self._topic, key, problem) from None
        if found.nanos <= 0:
            raise BadInput(self._topic, key, "expire_after has to be longer than nothing.")
        return found

    def _json(self, key: str, value: Any, what: str) -> str | None:
        if value is None:
            return None
        try:
            return as_json(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise BadInput(self._topic, key, f"{what} is not JSON: {error}.") from None

    def _utf8(self, key: str | None, text: str, what: str) -> None:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            problem = f"{what} has a lone surrogate at {error.start}, which UTF-8 cannot hold."
            raise BadInput(self._topic, key, problem) from None


def _rehearse(topic: str, action: Append) -> None:
    """Refuses an append that would stop a writer. Raises ``Unwritable``."""
    record = write_action(action)
    try:
        if read_action(record.key, record.value, record.timestamp, 0, record.headers) != action:
            raise Unwritable("readers would take it for something else than was said")
        fold = Fold(topic, action.key, None)
        fold.apply(Message(0, 0, 0, 0, action.timestamp * 1000, action))
    except Undecodable as error:
        raise Unwritable(error.reason) from None
    for row in fold.effect().rows:
        if (size := len(row_cells(row))) > MOST_OF_A_ROW:
            problem = f"event {row.seq_nr} takes {size} bytes in Cassandra, and {MOST_OF_A_ROW} is the most"
            raise Unwritable(problem)
