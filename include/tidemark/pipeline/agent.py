"""The section ``agent`` of a pipeline file: how the OpLog agent of a pipeline listens, and what it refuses.

Holds no secret: tokens are in the connection that ``tokens`` names. Nothing here opens a socket.
"""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from ipaddress import ip_address
from typing import Annotated, ClassVar, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from tidemark.pipeline.parts import ConnectionId, Count, Declaration, Duration, Size, each_once
from tidemark.pipeline.problems import Disagreement, Finding, quoted
from tidemark.pipeline.quantities import duration_text

OPLOG = "oplog"
"""The format of a source that has an agent."""
DEFAULT_PORT = 8042
OTHER_TOKENS = "other tokens"
"""The key of a validation's context that says: there are tokens beside those of the connection."""


class UdpMode(StrEnum):
    """Where operations are accepted by UDP, which has no tokens and may be forged."""

    LOOPBACK = "loopback"
    """On the loopback address, whatever ``listen`` says."""
    OPEN = "open"
    """On the address of ``listen``."""
    CLOSED = "closed"
    """Nowhere."""


class UnknownId(StrEnum):
    """What a stream does with an id from which it cannot resume exactly."""

    FALLBACK = "fallback"
    """It sends what has changed since, from the collection."""
    IGNORE = "ignore"
    """It sends what comes from now on, as the first version of OpLog did."""


def address(text: str) -> str:
    """An address to listen on, such as ``127.0.0.1:8042`` or ``[::1]:8042``."""
    host, port = split_address(text)
    if not host or port is None:
        raise ValueError(f"is {quoted(text)}, which is not an address. Write one such as 127.0.0.1:8042.")
    return text


def split_address(text: str) -> tuple[str, int | None]:
    """Host and port of an address; the port is None where there is no valid one."""
    host, _, port = text.rpartition(":")
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        return host, None
    number = int(port) if port.isascii() and port.isdecimal() and len(port) <= 5 else 0
    return host.strip("[]"), number if 0 < number < 65536 else None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a listener on this host."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _object_url(text: str) -> str:
    if urlsplit(text).scheme not in ("http", "https") or not text.isprintable() or " " in text:
        raise ValueError(f"is {quoted(text)}, which is not a URL. Write one with http:// or https://.")
    if "{{id}}" not in text:
        raise ValueError(
            f"is {quoted(text)}, which is the same for every object. Write {{{{type}}}} and {{{{id}}}} where "
            "an object's type and id belong."
        )
    return text


def _origin(text: str) -> str:
    parts = urlsplit(text)
    if text != "*" and (parts.scheme not in ("http", "https") or text != f"{parts.scheme}://{parts.netloc}"):
        raise ValueError(
            f"is {quoted(text)}, which is not an origin. Write one such as https://shop.example, or * for "
            "all pages."
        )
    return text


def _at_least_a_second(given: timedelta) -> timedelta:
    if given < timedelta(seconds=1):
        raise ValueError(f"is `{duration_text(given)}`. It must be `1s` or longer.")
    return given


Interval = Annotated[Duration, AfterValidator(_at_least_a_second)]
Origin = Annotated[str, AfterValidator(_origin)]


class AgentLimits(Declaration):
    """The most that clients may ask of an agent."""

    body: Size = 1_000_000
    """The bytes of a request's body."""
    lines: Annotated[Count, Field(ge=1)] = 10_000
    """The operations of a request."""
    connections: Annotated[Count, Field(ge=1)] = 10_000
    """Connections at a time."""
    connections_per_token: Annotated[Count, Field(ge=1)] = 1_000
    """Streams at a time with one token."""


class AgentDeclaration(Declaration):
    """The agent that takes operations in and streams them out."""

    not_here: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("token", "password", "ingest_password"),
        "Secrets belong in a connection. Name the connection in `tokens`.",
    )

    listen: Annotated[str, AfterValidator(address)] = f"127.0.0.1:{DEFAULT_PORT}"
    udp: UdpMode = UdpMode.LOOPBACK
    queue: Annotated[Count, Field(ge=1)] = 100_000
    """The operations that wait for Kafka at most."""
    limits: AgentLimits = AgentLimits()
    tokens: ConnectionId | None = None
    """The connection with the tokens of readers and senders; None: every client may do everything."""
    cors: Annotated[tuple[Origin, ...], AfterValidator(each_once)] = ()
    """The origins whose pages may use the agent in a browser."""
    unknown_id: UnknownId = UnknownId.FALLBACK
    object_url: Annotated[str, AfterValidator(_object_url)] | None = None
    """What streams add to every operation as ``ref``, with the object's type and id filled in."""
    heartbeat: Interval = timedelta(seconds=25)
    checkpoint: Interval = timedelta(seconds=30)
    max_age: Interval = timedelta(hours=1)
    """The longest life of a stream. It is randomised, so that clients do not return all at once."""

    @property
    def address(self) -> tuple[str, int]:
        """The host and port of ``listen``."""
        host, port = split_address(self.listen)
        return host, port or DEFAULT_PORT

    @model_validator(mode="after")
    def _is_not_open_to_all(self, info: ValidationInfo) -> Self:
        host, _ = self.address
        if self.tokens is None and not is_loopback(host) and not (info.context or {}).get(OTHER_TOKENS):
            text = (
                f"is missing, and `listen` is {quoted(self.listen)}, which other machines reach. Name a "
                "connection with tokens, or listen on 127.0.0.1."
            )
            raise Disagreement([Finding(("tokens",), text)])
        return self
