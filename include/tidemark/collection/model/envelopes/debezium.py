"""The envelope ``debezium``: change events of a database table, as Debezium's connectors send them.

The value is an object with ``op`` and, for rows that are there afterwards, ``after``. A JSON converter may
wrap value and key into ``schema`` and ``payload``. No value, which is Debezium's tombstone after a delete, is
a delete as well. ``before`` is not used: it is whole only with some settings of some databases.
"""

from collections.abc import Mapping
from typing import Any

from tidemark.collection.model.envelopes.envelope import DELETED, Change, Envelope, EnvelopeName
from tidemark.collection.model.key_format import KeyFormat
from tidemark.collection.model.no_row import NoRow
from tidemark.collection.model.values.misfit import shown
from tidemark.delivery.transforms.document import Operation

_OPERATIONS = {"c": Operation.INSERT, "r": Operation.INSERT, "u": Operation.UPDATE}
_WRAPPER = {"schema", "payload"}
_DELETE, _MESSAGE, _TRUNCATE = "d", "m", "t"
_WITHHELD = frozenset({"__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="})
"""Sent in place of a large value that did not change; the second one is its base64, for bytes."""


def _unwrapped(value: Any) -> Any:
    is_wrapped = isinstance(value, Mapping) and value.keys() == _WRAPPER
    return value["payload"] if is_wrapped else value


def _open(value: Mapping[str, Any] | None) -> Change | None:
    event = _unwrapped(value)
    if event is None:
        return DELETED
    op = event.get("op") if isinstance(event, Mapping) else None
    if op is None:
        raise NoRow("it has no `op`, so it is not a change event of Debezium")
    if isinstance(op, str):
        if op in _OPERATIONS:
            after = event.get("after")
            if not isinstance(after, Mapping):
                raise NoRow(f"its `op` is {shown(op)}, but it has no `after` with the row")
            return Change(_OPERATIONS[op], after)
        if op == _DELETE:
            return DELETED
        if op == _MESSAGE:
            return None
        if op == _TRUNCATE:
            raise NoRow(
                "it says that all rows of the table were truncated, and a message can only change the row of "
                "its own key. Keep such events out with Debezium's `skipped.operations`, and delete the rows "
                "by messages of their own"
            )
    raise NoRow(f"its `op` is {shown(op)}, which is not one of c, r, u, d, t and m")


DEBEZIUM = Envelope(
    EnvelopeName.DEBEZIUM,
    _open,
    key_format=KeyFormat.JSON,
    unwrap_key=_unwrapped,
    withheld=_WITHHELD,
)
