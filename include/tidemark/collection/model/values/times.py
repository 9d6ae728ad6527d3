"""Dates, times of day and timestamps, from their texts. Nothing is rounded to what Cassandra can hold."""

import re
from datetime import UTC, datetime, timedelta
from datetime import date as Date
from struct import Struct, error
from typing import Any

from tidemark.cassandra.cells import date as date_cell
from tidemark.collection.model.values.misfit import Misfit

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,9}))?")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.([0-9]{1,3})0*)?"
    r"(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_FINER = re.compile(r"[^.]+\.[0-9]{4,}[^0-9].*")
_MILLISECONDS = re.compile(r"0|-?[1-9][0-9]{0,18}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_long = Struct(">q").pack


def date(value: Any) -> bytes:
    """``date``: year, month and day."""
    if type(value) is not str or not _DATE.fullmatch(value):
        raise Misfit(value, "is not a date such as 2024-12-31")
    try:
        return date_cell(Date.fromisoformat(value))[4:]
    except ValueError:
        raise Misfit(value, "is a day that no calendar has") from None


def time(value: Any) -> bytes:
    """``time``: nanoseconds since midnight."""
    parts = _TIME.fullmatch(value) if type(value) is str else None
    if parts is None:
        raise Misfit(value, "is not a time such as 23:59:59.999")
    hour, minute, second, fraction = parts.groups("")
    if hour > "23" or minute > "59" or second > "59":
        raise Misfit(value, "is a time that no clock has")
    seconds = int(hour) * 3_600 + int(minute) * 60 + int(second)
    return _long(seconds * 1_000_000_000 + int(fraction.ljust(9, "0")))


def timestamp(value: Any) -> bytes:
    """``timestamp``: milliseconds since 1970, or text by RFC 3339 with its offset from UTC."""
    if type(value) is int:
        try:
            return _long(value)
        except error:
            raise Misfit(value, "is not a number of milliseconds with 64 bits") from None
    if type(value) is str:
        if _MOMENT.fullmatch(value):
            try:
                return _long((datetime.fromisoformat(value.upper()) - _EPOCH) // _MILLISECOND)
            except ValueError:
                raise Misfit(value, "is a moment that no calendar or no clock has") from None
        if _FINER.fullmatch(value):
            raise Misfit(value, "is finer than a millisecond")
    raise Misfit(value, "is neither a time such as 2024-12-31T23:59:59Z nor a number of milliseconds")


def timestamp_in(text: str) -> bytes:
    """A ``timestamp`` where only text is possible: digits are milliseconds."""
    return timestamp(int(text) if _MILLISECONDS.fullmatch(text) else text)
