"""The request for a stream, and what its answer means before the stream begins."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import httpx

from tidemark.oplog.consumer.backoff import seconds_to_wait
from tidemark.oplog.consumer.errors import BadOpLogOption, StreamDenied, StreamRefused

_LATER = {408, 425, 429}
"""Answers below 500 after which the same request may succeed."""


@dataclass(frozen=True, slots=True)
class StreamAddress:
    """Where the stream is, and what is asked of it.

    Attributes:
        url: The address with its query.
        shown: The address for messages: without a password and without the query, which may have a ticket.
        token: The token, None for none.
    """

    url: httpx.URL
    shown: str
    token: str | None = field(repr=False)

    @classmethod
    def of(
        cls,
        url: str,
        types: str | Iterable[str] | None,
        parents: str | Iterable[str] | None,
        since: datetime | int | None,
        token: str | None,
    ) -> "StreamAddress":
        """The address for these arguments of a consumer; raises ``BadOpLogOption``."""
        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, TypeError) as error:
            raise BadOpLogOption("url", f"is not an address ({error})") from None
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise BadOpLogOption("url", "is not an address that begins with http:// or https://")
        query = {"types": _list("types", types), "parents": _list("parents", parents), "since": _time(since)}
        given = {name: value for name, value in query.items() if value is not None}
        shown = str(parsed.copy_with(userinfo=b"", query=None, fragment=None))
        if token is not None and (not token.isascii() or not token.isprintable() or not token.strip()):
            raise BadOpLogOption("token", "has characters that no header can have")
        return cls(parsed.copy_merge_params(given) if given else parsed, shown, token)

    def headers(self, event_id: str | None) -> dict[str, str]:
        """The headers of a request that continues after an id."""
        headers = {
            "Accept": "text/event-stream",
            "Accept-Encoding": "identity",  # compressed, events could wait in a buffer for the next one
            "Cache-Control": "no-cache",
        }
        if event_id is not None:
            headers["Last-Event-ID"] = event_id
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers


@dataclass(frozen=True, slots=True)
class TryLater:
    """No stream now.

    Attributes:
        reason: Why, for the log.
        wait: How many seconds the answer asks to wait.
    """

    reason: str
    wait: float


def judged(shown: str, status: int, headers: Mapping[str, str], excerpt: bytes) -> TryLater | None:
    """What an answer means.

    Args:
        shown: The address for messages.
        status: The status of the answer.
        headers: Its headers, by lower-case names.
        excerpt: The beginning of its body, if it is no stream.

    Returns:
        None for a stream.

    Raises:
        StreamDenied: 401 or 403.
        StreamRefused: The same request would be answered so again.
    """
    if status == 200:
        if not headers.get("content-type", "").lower().startswith("text/event-stream"):
            raise StreamRefused(
                shown, status, f"its content is {headers.get('content-type') or 'of no type'}"
            )
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise StreamRefused(shown, status, "it is compressed, which was not asked for")
        return None
    reason = _printable(excerpt) or "no reason given"
    if status in (401, 403):
        raise StreamDenied(shown, status, reason)
    if status in _LATER or status >= 500:
        return TryLater(f"it answered {status}: {reason}", seconds_to_wait(headers.get("retry-after")))
    if 300 <= status < 400:
        reason = "it redirects; give the address that it redirects to"
    raise StreamRefused(shown, status, reason)


def _list(option: str, values: str | Iterable[str] | None) -> str | None:
    if values is None:
        return None
    found = values.split(",") if isinstance(values, str) else list(values)
    if not found or not all(isinstance(each, str) and each.strip() for each in found):
        raise BadOpLogOption(option, "has no value, or an empty one; leave it out for all of them")
    if any("," in each for each in found):
        raise BadOpLogOption(option, "has a value with a comma, which separates values in the request")
    return ",".join(found)


def _time(since: datetime | int | None) -> str | None:
    if since is None:
        return None
    if isinstance(since, datetime):
        if since.tzinfo is None:
            raise BadOpLogOption("since", "has no time zone")
        since = int(since.timestamp() * 1000)
    if not 0 <= since < 10**13:
        raise BadOpLogOption("since", "is not a time in ms since 1970, of 13 digits at most")
    return str(since)


def _printable(excerpt: bytes) -> str:
    text = " ".join(excerpt.decode("utf-8", "replace").split())
    return "".join(letter for letter in text if letter.isprintable())[:300]
