"""Actions made from what a caller gives: checked first, so that nothing wrong is ever sent."""

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from tidemark.client.errors import BadInput
from tidemark.client.events import Event, as_json
from tidemark.journal.action import Append, append
from tidemark.journal.errors import JournalError
from tidemark.journal.events import Events, PayloadMetadata
from tidemark.journal.expiry import ExpireAfter, read_expire_after
from tidemark.journal.jsontext import LONG_MAX
from tidemark.journal.record import ACTION_HEADER


class Checks:
    """What may be said about the entities of one topic."""

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def key(self, key: Any) -> str:
        """A key, which every reader will take for the same."""
        if not isinstance(key, str):
            raise BadInput(self._topic, key, "a key is text.")
        self._utf8(key, key, "the key")
        return key

    def number(self, key: str, value: Any, what: str) -> int:
        """A sequence number."""
        if type(value) is not int or not 1 <= value <= LONG_MAX:
            raise BadInput(self._topic, key, f"{what} is a number from 1 to {LONG_MAX}, not {value!r}.")
        return value

    def headers(self, key: str, headers: Mapping[str, str] | None) -> dict[str, str]:
        """Headers of one's own."""
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
        of_payload = PayloadMetadata(
            self.expire_after(key, expire_after), self._json(key, payload_metadata, "payload_metadata")
        )
        try:
            return append(
                key,
                timestamp,
                Events(tuple(event.encoded() for event in found), of_payload),
                origin=origin,
                version=version,
                metadata=self._json(key, metadata, "metadata"),
                headers=self.headers(key, headers),
            )
        except JournalError as error:
            raise BadInput(self._topic, key, f"{error}.") from None

    def expire_after(self, key: str, value: str | timedelta | None) -> ExpireAfter | None:
        """How long an entity is to live."""
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

    def _utf8(self, key: str, text: str, what: str) -> None:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            problem = f"{what} has a lone surrogate at {error.start}, which UTF-8 cannot hold."
            raise BadInput(self._topic, key, problem) from None
