"""Times of operations: RFC 3339 with an offset in, milliseconds inside, UTC out."""

from datetime import UTC, datetime, timedelta

import msgspec

from tidemark.operations.errors import BadOperation

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def milliseconds(text: str) -> int:
    """The time that a text says, cut to milliseconds; raises ``BadOperation``."""
    try:
        found = msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        raise BadOperation("its `timestamp` is not a time by RFC 3339") from None
    if found.tzinfo is None:
        raise BadOperation("its `timestamp` has no offset; write `Z` for UTC")
    return (found - _EPOCH) // _MILLISECOND


def rfc3339(ms: int) -> str:
    """A time in UTC, with three digits for milliseconds."""
    found = _EPOCH + ms * _MILLISECOND
    return f"{found:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"
