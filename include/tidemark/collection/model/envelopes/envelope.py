"""What an envelope is: the rules that every one of them gives. Imports no codec: pipeline files name them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from tidemark.collection.model.key_format import KeyFormat
from tidemark.delivery.transforms.document import Operation


class EnvelopeName(StrEnum):
    """The word in the file. Stored with the settings of renditions, so it can never change."""

    UPSERT = "upsert"
    APPEND = "append"
    DEBEZIUM = "debezium"


class KeySource(StrEnum):
    """Where the key of a row comes from.

    Attributes:
        MESSAGE_KEY: From the key of the message.
        MESSAGE_ID: From the id of the message: every message is a row of its own.
    """

    MESSAGE_KEY = "message key"
    MESSAGE_ID = "message id"


class Change(NamedTuple):
    """What a message says about the row of its key.

    Attributes:
        op: Whether the row is there after it.
        data: The row's fields; empty for a delete.
    """

    op: Operation
    data: Mapping[str, Any]


DELETED = Change(Operation.DELETE, {})


@dataclass(frozen=True, slots=True)
class Envelope:
    """One envelope.

    Attributes:
        name: Its name in the file.
        open: From a message's value, None without one, to what it says; None for a message that says nothing
            about rows. Raises ``NoRow``.
        key_source: Where keys come from.
        has_deletes: Whether a message, or a transform, can delete a row.
        key_format: How message keys are read unless the file says otherwise; None: by their columns.
        unwrap_key: Takes the wrapper off a JSON key.
        withheld: Texts that stand for values which the message does not have.
    """

    name: EnvelopeName
    open: Callable[[Mapping[str, Any] | None], Change | None]
    key_source: KeySource = KeySource.MESSAGE_KEY
    has_deletes: bool = True
    key_format: KeyFormat | None = None
    unwrap_key: Callable[[Any], Any] | None = None
    withheld: frozenset[str] = frozenset()
