"""Operations for tests: one to vary, its JSON, and any that there can be."""

import json
from typing import Any

from hypothesis import strategies as st

from tidemark.operations.operation import EventName, ObjectOperation
from tidemark.operations.times import EARLIEST, LATEST

MOMENT = 1_415_243_079_041
"""2014-11-06T03:04:39.041Z"""
_FIELDS = {
    "event": "insert",
    "timestamp": "2014-11-06T03:04:39.041Z",
    "parents": ["user/x3kd"],
    "type": "video",
    "id": "x34cd",
}


def sent(**fields: Any) -> bytes:
    """An operation as a producer sends it."""
    return json.dumps({**_FIELDS, **fields}, ensure_ascii=False).encode()


def given_operation(
    event: EventName = EventName.INSERT,
    timestamp: int = MOMENT,
    parents: tuple[str, ...] = ("user/x3kd",),
    type_: str = "video",
    id_: str = "x34cd",
) -> ObjectOperation:
    """The operation of ``sent``."""
    return ObjectOperation(event, timestamp, parents, type_, id_)


_names = st.text(min_size=1, max_size=40)
operations = st.builds(
    ObjectOperation,
    st.sampled_from(EventName),
    st.integers(EARLIEST, LATEST),
    st.lists(_names, max_size=4).map(tuple),
    _names.map(lambda name: name.lower().replace("/", "-")),
    _names,
)
"""Any operation that can be read."""
