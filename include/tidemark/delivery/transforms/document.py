"""A message as transforms see it. Imports nothing but the standard library: users' functions import it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Operation(StrEnum):
    """What a document does at the target.

    Attributes:
        INSERT: The operation of a message with a value when it arrives.
        UPDATE: Written like an insert.
        DELETE: Written without a value. A message that arrives without a value is not passed to transforms.
    """

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class Unfit(Exception):
    """A document that a transform cannot process, with the reason as one sentence. The message is then
    undecodable for the writer."""


@dataclass(frozen=True, slots=True)
class Document:
    """A message as transforms see it.

    Attributes:
        op: What it does at the target.
        ts: The record's timestamp, in ms since 1970.
        namespace: The topic.
        data: The value, as JSON values by field.
    """

    op: Operation
    ts: int
    namespace: str
    data: Mapping[str, Any]


Change = Callable[[Document], Document | None]
"""The function of a transform: from a document to a document, or to None to drop the message. It does not
change its argument, and returns the same result for the same document every time."""
