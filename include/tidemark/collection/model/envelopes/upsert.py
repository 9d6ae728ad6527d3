"""The envelope ``upsert``: the value is the row; no value deletes it."""

from collections.abc import Mapping
from typing import Any

from tidemark.collection.model.envelopes.envelope import DELETED, Change, Envelope, EnvelopeName
from tidemark.delivery.transforms.document import Operation


def _open(value: Mapping[str, Any] | None) -> Change:
    return DELETED if value is None else Change(Operation.INSERT, value)


UPSERT = Envelope(EnvelopeName.UPSERT, _open)
