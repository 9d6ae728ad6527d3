"""Who may read and who may send: the tokens of requests, and tickets for browsers.

A browser's ``EventSource`` cannot send a header. Its page asks for a ticket with a token, and opens the
stream with ``?ticket=``: a ticket is valid once, for a minute, for what its token allows.
"""

import base64
import binascii
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tidemark.oplog.agent.server.answers import Answer, Header, document, refusal, try_again
from tidemark.oplog.agent.server.headers import RequestHead
from tidemark.oplog.agent.server.tokens import AgentToken, TokenRole, find_token

TICKET_SECONDS = 60
MOST_TICKETS = 10_000
_CHALLENGES: tuple[Header, ...] = (
    (b"www-authenticate", b'Bearer realm="oplog"'),
    (b"www-authenticate", b'Basic realm="oplog", charset="UTF-8"'),
)


class AccessRefused(Exception):
    """A request is not allowed; the router sends the answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Ticket:
    """A ticket that was issued: the token it stands for, and until when, in seconds since 1970."""

    token: AgentToken | None
    until: float


class Access:
    """The tokens of an agent, its tickets, and the streams of each token. Without tokens, all is allowed."""

    def __init__(
        self, tokens: Sequence[AgentToken], most_streams: int, clock: Callable[[], float] = time.time
    ) -> None:
        """``most_streams``: streams at a time for each token. ``clock``: seconds since 1970."""
        self._tokens, self._most_streams, self._clock = tuple(tokens), most_streams, clock
        self._tickets: dict[str, Ticket] = {}
        self._streams = Counter[str]()

    @property
    def needs_token(self) -> bool:
        """Whether requests need a token."""
        return bool(self._tokens)

    def check(self, head: RequestHead, role: TokenRole) -> AgentToken | None:
        """The token of a request; None where none is needed. Raises ``AccessRefused``: 401 or 403."""
        if not self._tokens:
            return None
        offered = _offered(head.headers.get("authorization"))
        token = find_token(self._tokens, offered, self._clock) if offered is not None else None
        if token is None:
            problem = "The token is not valid." if offered is not None else "A token is required."
            raise AccessRefused(refusal(401, problem, *_CHALLENGES))
        if role not in token.roles:
            raise AccessRefused(refusal(403, f"The token is not one of a {role}."))
        return token

    def check_stream(self, head: RequestHead) -> AgentToken | None:
        """The token of a request for a stream, which may come with a ticket instead."""
        if (text := head.first("ticket")) is None:
            return self.check(head, TokenRole.READER)
        ticket = self._tickets.pop(text, None)
        now = self._clock()
        if ticket is None or ticket.until <= now or _is_over(ticket.token, now):
            raise AccessRefused(refusal(401, "The ticket is not valid: it is for one use.", *_CHALLENGES))
        return ticket.token

    def issue_ticket(self, token: AgentToken | None) -> Answer:
        """The answer to a request for a ticket."""
        now = self._clock()
        if len(self._tickets) >= MOST_TICKETS:
            self._tickets = {text: one for text, one in self._tickets.items() if one.until > now}
        if len(self._tickets) >= MOST_TICKETS:
            return try_again(429, TICKET_SECONDS, "Too many tickets are waiting to be used.")
        text = secrets.token_urlsafe(32)
        self._tickets[text] = Ticket(token, now + TICKET_SECONDS)
        return document(200, {"ticket": text, "expires_in": TICKET_SECONDS})

    @contextmanager
    def stream(self, token: AgentToken | None) -> Iterator[None]:
        """Count a stream until the end of the block. Raises ``AccessRefused``: 429."""
        if token is None:
            yield
            return
        if self._streams[token.name] >= self._most_streams:
            reason = f"The token has {self._most_streams} streams, which is the most."
            raise AccessRefused(try_again(429, 10, reason))
        self._streams[token.name] += 1
        try:
            yield
        finally:
            self._streams[token.name] -= 1

    def expires_at(self, token: AgentToken | None) -> float | None:
        """When a token expires, on the clock ``time.monotonic``."""
        if token is None or token.expires is None:
            return None
        return time.monotonic() + token.expires - self._clock()


def _is_over(token: AgentToken | None, now: float) -> bool:
    return token is not None and token.expires is not None and token.expires <= now


def _offered(authorization: bytes | None) -> bytes | None:
    """The token of an ``Authorization`` header: Bearer, or the password of Basic with any user."""
    scheme, _, value = (authorization or b"").strip().partition(b" ")
    match scheme.lower():
        case b"bearer":
            return value.strip()
        case b"basic":
            try:
                return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
            except binascii.Error:
                return b""
    return None
