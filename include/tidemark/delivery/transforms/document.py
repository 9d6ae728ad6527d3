"""A message as transforms see it. Imports nothing but the standard library: users' functions import it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Operation(StrEnum):
    """What a document does at the target."""

    INSERT = "insert"
    """What a message with a value is at first."""
    UPDATE = "update"
    DELETE = "delete"
    """Written without a value. A message that has none when it arrives is not shown to transforms."""


class Unfit(Exception):
    """A document that a transform has no answer for, as one sentence. The message is undecodable for the
    writer."""


@dataclass(frozen=True, slots=True)
class Document:
    """A message as transforms see it.

    ``op`` is what it does at the target, ``ts`` the record's timestamp in milliseconds since 1970,
    ``namespace`` the topic, and ``data`` the value as JSON values by field.
    """

    op: Operation
    ts: int
    namespace: str
    data: Mapping[str, Any]


Change = Callable[[Document], Document | None]
"""What a transform does: a document to a document, or to None to drop it. It never changes the one it gets,
and gives the same result for the same document every time."""
