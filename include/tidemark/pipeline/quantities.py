"""Sizes and durations as people write them: ``1GB``, ``512MiB``, ``30m``, ``7d``.

Nothing is guessed: a duration without a unit, ``1gb`` and half a byte are refused with what to write instead.
"""

import re
from datetime import timedelta
from decimal import Decimal

BYTES = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}

_LARGEST_SIZE = 2**63 - 1
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]+)")
_DURATION_PART = re.compile(r"([0-9]+)([a-z])")
_SIZE_EXAMPLES = "Write a whole number of bytes, or a number and a unit, such as 512MiB or 1GB"
_DURATION_EXAMPLES = "Write whole numbers with s, m, h, d or w, such as 30m, 1h or 7d"


def parse_size(value: object) -> int:
    """Bytes, at least one; KB, MB, GB and TB are powers of 1000, KiB, MiB, GiB and TiB powers of 1024."""
    if isinstance(value, int) and not isinstance(value, bool):
        size = Decimal(value)
    else:
        match = _SIZE.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise ValueError(f"is not a size. {_SIZE_EXAMPLES}.")
        number, unit = match.groups()
        if unit not in BYTES:
            meant = next((known for known in BYTES if known.casefold() == unit.casefold()), None)
            hint = f"Did you mean `{number}{meant}`?" if meant else f"Units: {', '.join(BYTES)}."
            raise ValueError(f"has the unit `{unit}`, which is not known. {hint}")
        size = Decimal(number) * BYTES[unit]
    if size != int(size):
        raise ValueError(f"is not a whole number of bytes. {_SIZE_EXAMPLES}.")
    if not 1 <= size <= _LARGEST_SIZE:
        raise ValueError(f"must be between 1 byte and {_LARGEST_SIZE} bytes. {_SIZE_EXAMPLES}.")
    return int(size)


def parse_duration(value: object) -> timedelta:
    """A length of time, zero or more; parts add up: ``1h30m``."""
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        raise ValueError(f"has no unit. Did you mean `{value}s`?")
    parts = _DURATION_PART.findall(value) if isinstance(value, str) else []
    if not parts or "".join(number + unit for number, unit in parts) != value:
        raise ValueError(f"is not a duration. {_DURATION_EXAMPLES}.")
    for _, unit in parts:
        if unit not in SECONDS:
            raise ValueError(f"has the unit `{unit}`, which is not known. {_DURATION_EXAMPLES}.")
    try:
        return timedelta(seconds=sum(int(number) * SECONDS[unit] for number, unit in parts))
    except (OverflowError, ValueError):
        raise ValueError(f"is longer than anything can wait. {_DURATION_EXAMPLES}.") from None


def duration_text(duration: timedelta) -> str:
    """The duration in whole seconds, in the form ``parse_duration`` reads."""
    return f"{int(duration.total_seconds())}s"


FOREVER = "forever"


def parse_retention(value: object) -> int:
    """Milliseconds after which Kafka may remove a record; −1 for ``forever``, as Kafka says it."""
    if value == FOREVER or (isinstance(value, int) and not isinstance(value, bool) and value == -1):
        return -1
    try:
        kept = parse_duration(value)
    except ValueError as error:
        raise ValueError(f"{str(error).rstrip('.')}, or `{FOREVER}`.") from None
    if not kept:
        raise ValueError(f"would keep no record. {_DURATION_EXAMPLES}, or `{FOREVER}`.")
    return round(kept.total_seconds() * 1000)


def retention_text(retention: int) -> str:
    """The retention in the form ``parse_retention`` reads."""
    return FOREVER if retention == -1 else f"{retention // 1000}s"
