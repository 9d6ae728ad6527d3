"""What an envelope is: the rules that every one of them gives. Imports no codec: pipeline files name them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from tidemark.collection.model.key_format import KeyFormat
from tidemark.delivery.transforms.document import Operation

if TYPE_CHECKING:
    from tidemark.operations.corrections import Correction


class EnvelopeName(StrEnum):
    """The word in the file. Stored with the settings of renditions, so it can never change."""

    UPSERT = "upsert"
    APPEND = "append"
    DEBEZIUM = "debezium"
    OPLOG = "oplog"


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


class GivenColumns(NamedTuple):
    """The columns of an envelope that gives them itself, each with its CQL type: a file names none.

    Attributes:
        key: The key columns, in their order.
        data: The data columns, in their order.
    """

    key: Mapping[str, str]
    data: Mapping[str, str]


GIVEN_COLUMNS: Mapping[EnvelopeName, GivenColumns] = {
    EnvelopeName.OPLOG: GivenColumns(
        {"type": "text", "id": "text"},
        {"event": "text", "timestamp": "timestamp", "parents": "list<text>"},
    )
}


class WholeRecord(NamedTuple):
    """What a whole record says: for envelopes that read key, value and headers themselves.

    Attributes:
        key: The cells of the key columns.
        values: The cells of the data columns; those of a delete too.
        gone: Whether the key is gone after it.
        correction: What makes it a correction, which may be void; None for others.
    """

    key: tuple[bytes, ...]
    values: tuple[bytes | None, ...]
    gone: bool
    correction: "Correction | None"


Headers = Sequence[tuple[str, bytes | None]]
ReadWhole = Callable[[bytes | None, bytes | None, Headers], WholeRecord]
"""From a message's key, value and headers; raises ``NoRow``."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """One envelope.

    Attributes:
        name: Its name in the file.
        open: From a message's value, None without one, to what it says; None for a message that says nothing
            about rows. Raises ``NoRow``. Not called where ``read_whole`` is given.
        key_source: Where keys come from.
        has_deletes: Whether a message, or a transform, can delete a row.
        key_format: How message keys are read unless the file says otherwise; None: by their columns.
        unwrap_key: Takes the wrapper off a JSON key.
        withheld: Texts that stand for values which the message does not have.
        read_whole: Reads whole records, without transforms; None where key and value are read by the columns.
    """

    name: EnvelopeName
    open: Callable[[Mapping[str, Any] | None], Change | None]
    key_source: KeySource = KeySource.MESSAGE_KEY
    has_deletes: bool = True
    key_format: KeyFormat | None = None
    unwrap_key: Callable[[Any], Any] | None = None
    withheld: frozenset[str] = frozenset()
    read_whole: ReadWhole | None = None

    @property
    def keeps_deleted(self) -> bool:
        """Whether the row of a deleted key has values, which readers of deletes may ask for."""
        return self.read_whole is not None

    @property
    def has_corrections(self) -> bool:
        """Whether messages may be void because of earlier ones of their key."""
        return self.read_whole is not None
