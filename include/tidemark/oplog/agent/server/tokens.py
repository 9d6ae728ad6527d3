"""Tokens of readers and senders, as the connection of an agent declares them. No secret is ever shown.

The connection's extra has ``readers`` and ``senders``, each a mapping from a name to a token, or to a mapping
with ``token`` and what it is limited to::

    {"readers": {"search": "…", "shop": {"token": "…", "types": ["video"], "parents": ["channel/7"],
                                         "expires": "2027-01-01T00:00:00Z"}},
     "senders": {"cms": "…"}}

A password of the connection is a token that may do both. Tokens are read when the agent starts: another token
takes effect when the agent is started again, and its clients resume where they were.
"""

import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Any

from tidemark.connections import BadConnection, OtherConnection
from tidemark.operations.errors import BadOperation
from tidemark.operations.filters import OperationFilter
from tidemark.operations.times import milliseconds

NO_LIMITS = OperationFilter()
SHORTEST = 8
"""Characters of a token; shorter ones can be guessed."""
TOKEN_SHAPE = f"a text of {SHORTEST} or more printable ASCII characters"
_KEYS = {"token", "types", "parents", "expires"}


class TokenRole(StrEnum):
    """What a token is for."""

    READER = "reader"
    SENDER = "sender"


@dataclass(frozen=True, slots=True)
class AgentToken:
    """A token.

    Attributes:
        name: Its name in logs.
        digest: The SHA-256 of its text, which itself is not kept.
        roles: What it is for.
        limits: The types and parents that it is limited to; empty for all.
        expires: When it expires, in seconds since 1970; None: never.
    """

    name: str
    digest: bytes = field(repr=False)
    roles: frozenset[TokenRole]
    limits: OperationFilter = NO_LIMITS
    expires: float | None = None

    def may_send(self, type_: str, parents: Sequence[str]) -> bool:
        """Whether it may send an operation: its type is allowed, and each of its parents.

        An operation without parents reaches every stream, so a token that is limited to parents needs one.
        """
        if self.limits.types and type_ not in self.limits.types:
            return False
        return not self.limits.parents or (bool(parents) and self.limits.parents.issuperset(parents))


def digest_of(token: str | bytes) -> bytes:
    """What is compared instead of a token."""
    return sha256(token.encode() if isinstance(token, str) else token).digest()


def find_token(tokens: Sequence[AgentToken], offered: bytes, clock: Callable[[], float]) -> AgentToken | None:
    """The valid token with this text. Takes the same time wherever, and however far, texts agree."""
    digest, found = digest_of(offered), None
    for token in tokens:
        if hmac.compare_digest(token.digest, digest):
            found = token
    if found is None or (found.expires is not None and found.expires <= clock()):
        return None
    return found


def tokens_of(name: str, connection: OtherConnection) -> list[AgentToken]:
    """The tokens in a connection. Raises ``BadConnection``, without any of their texts."""
    found = [*_declared(name, connection.extra)]
    if connection.password is not None:
        text = _checked(name, "its password", connection.password.get_secret_value())
        found.append(AgentToken(connection.login or "password", digest_of(text), frozenset(TokenRole)))
    if not found:
        raise BadConnection(name, 'has no tokens. Put `{"readers": {…}, "senders": {…}}` into its extra.')
    digests = [token.digest for token in found]
    if len(set(digests)) < len(digests):
        raise BadConnection(name, "has one token twice. Give every reader and every sender its own.")
    return found


def _declared(name: str, extra: Mapping[str, Any]) -> Iterator[AgentToken]:
    if unknown := sorted(extra.keys() - {"readers", "senders"}):
        raise BadConnection(name, f"its extra has {unknown[0]!r}. It takes `readers` and `senders`.")
    for key, role in (("readers", TokenRole.READER), ("senders", TokenRole.SENDER)):
        entries = extra.get(key, {})
        if not isinstance(entries, Mapping):
            raise BadConnection(name, f"`{key}` is no mapping from names to tokens.")
        for owner, entry in entries.items():
            yield _token(name, f"{key}.{owner}", owner, role, entry)


def _token(name: str, place: str, owner: str, role: TokenRole, entry: Any) -> AgentToken:
    fields = entry if isinstance(entry, Mapping) else {"token": entry}
    if unknown := sorted(fields.keys() - _KEYS):
        raise BadConnection(name, f"{place} has {unknown[0]!r}. It takes {', '.join(sorted(_KEYS))}.")
    limits = OperationFilter.of(
        _texts(name, f"{place}.types", fields.get("types", [])),
        _texts(name, f"{place}.parents", fields.get("parents", [])),
    )
    digest = digest_of(_checked(name, f"{place}.token", fields.get("token")))
    expires = fields.get("expires")
    return AgentToken(owner, digest, frozenset({role}), limits, _time(name, f"{place}.expires", expires))


def is_token(text: Any) -> bool:
    """Whether a text can be a token."""
    return isinstance(text, str) and len(text) >= SHORTEST and text.isascii() and text.isprintable()


def _checked(name: str, place: str, token: Any) -> str:
    if not is_token(token):
        raise BadConnection(name, f"{place} is not {TOKEN_SHAPE}.")
    return str(token)


def _texts(name: str, place: str, given: Any) -> list[str]:
    if isinstance(given, list) and all(isinstance(one, str) and one for one in given):
        return given
    raise BadConnection(name, f"{place} is not a list of texts.")


def _time(name: str, place: str, given: Any) -> float | None:
    if given is None:
        return None
    try:
        return milliseconds(given if isinstance(given, str) else "") / 1000
    except BadOperation:
        raise BadConnection(
            name, f"{place} is not a time by RFC 3339, such as 2027-01-01T00:00:00Z."
        ) from None
