"""Headers and query parameters of requests, as the agent needs them. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

SSE = "text/event-stream"
NDJSON = "application/x-ndjson"
MOST_PARAMETERS = 100
MOST_NAMES = 1_000
"""Types or parents that a request may name."""


class BadQuery(ValueError):
    """A query string cannot be read; the router answers 400."""


@dataclass(frozen=True)
class RequestHead:
    """A request without its body.

    Attributes:
        method: In capitals.
        path: Decoded.
        headers: The first value of each header, by its name in lower case.
        query: The values of each query parameter.
    """

    method: str
    path: str
    headers: Mapping[str, bytes] = field(default_factory=dict)
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """A header as text."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1").strip()

    def first(self, name: str) -> str | None:
        """The first value of a query parameter."""
        return self.query[name][0] if name in self.query else None


def first_values(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, bytes]:
    """The first value of each header."""
    found: dict[str, bytes] = {}
    for name, value in headers:
        found.setdefault(name.decode("latin-1"), value)
    return found


def read_query(text: bytes) -> dict[str, list[str]]:
    """The parameters of a query string. Raises ``BadQuery``."""
    found: dict[str, list[str]] = {}
    parts = [part for part in text.split(b"&") if part]
    if len(parts) > MOST_PARAMETERS:
        raise BadQuery(f"it has more than {MOST_PARAMETERS} parameters")
    for part in parts:
        name, _, value = part.replace(b"+", b" ").partition(b"=")
        try:
            key, said = unquote_to_bytes(name).decode(), unquote_to_bytes(value).decode()
        except UnicodeDecodeError:
            raise BadQuery("a parameter is not UTF-8") from None
        if "\r" in said or "\n" in said or "\0" in said:
            raise BadQuery(f"parameter {key!r} has a line break or a NUL in it")
        found.setdefault(key, []).append(said)
    return found


def names(values: Sequence[str]) -> list[str]:
    """The names in all values of a parameter, separated by commas. Raises ``BadQuery``."""
    found = [name.strip() for value in values for name in value.split(",")]
    found = [name for name in found if name]
    if len(found) > MOST_NAMES:
        raise BadQuery(f"it names more than {MOST_NAMES} types or parents")
    return found


def stream_type(accept: str | None) -> str | None:
    """The type of a stream for an ``Accept`` header: server-sent events unless lines are liked better.

    None where neither is accepted.
    """
    if accept is None or not accept.strip():
        return SSE
    likes_events, likes_lines = quality(accept, SSE), quality(accept, NDJSON)
    if not likes_events and not likes_lines:
        return None
    return NDJSON if likes_lines > likes_events else SSE


def quality(accept: str, wanted: str) -> float:
    """How much an ``Accept`` header likes a type: the quality of the most specific range, 0 for none."""
    best, specific = 0.0, -1
    kind = wanted.partition("/")[0]
    for part in accept.split(",")[:MOST_PARAMETERS]:
        range_, *parameters = (piece.strip().lower() for piece in part.split(";"))
        rank = {"*/*": 0, f"{kind}/*": 1, wanted: 2}.get(range_, -1)
        if rank >= 0 and rank >= specific:
            value = next((_number(one[2:]) for one in parameters if one.startswith("q=")), 1.0)
            best, specific = (max(best, value) if rank == specific else value), rank
    return best


def _number(text: str) -> float:
    try:
        return min(1.0, max(0.0, float(text)))
    except ValueError:
        return 0.0


def media_type(text: str | None) -> tuple[str, str | None]:
    """The type of a ``Content-Type`` header and its charset, both in lower case."""
    type_, *parameters = (piece.strip().lower() for piece in (text or "").split(";"))
    charset = next((one[8:].strip('"') for one in parameters if one.startswith("charset=")), None)
    return type_, charset
