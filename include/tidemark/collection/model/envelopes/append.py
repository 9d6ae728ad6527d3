"""The envelope ``append``: every message is a row of its own, whose key is the message's id."""

from collections.abc import Mapping
from typing import Any

from tidemark.collection.model.envelopes.envelope import Change, Envelope, EnvelopeName, KeySource
from tidemark.collection.model.no_row import NoRow
from tidemark.delivery.transforms.document import Operation


def _open(value: Mapping[str, Any] | None) -> Change:
    if value is None:
        raise NoRow("it has no value, and there is no row to delete: with `append` every message is one")
    return Change(Operation.INSERT, value)


APPEND = Envelope(EnvelopeName.APPEND, _open, KeySource.MESSAGE_ID, has_deletes=False)
