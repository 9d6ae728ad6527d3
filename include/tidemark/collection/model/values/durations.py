"""Durations, from the two forms of text that Cassandra has for them: ``1mo2d3h`` and ``P1M2DT3H``.

A duration is months, days and nanoseconds, which are not converted into each other: a month has no number of
days. All three have the same sign.
"""

import re
from typing import Any

from tidemark.cassandra.cells import duration as duration_cell
from tidemark.collection.model.values.misfit import Misfit

_UNITS = {
    "y": (12, 0, 0),
    "mo": (1, 0, 0),
    "w": (0, 7, 0),
    "d": (0, 1, 0),
    "h": (0, 0, 3_600_000_000_000),
    "m": (0, 0, 60_000_000_000),
    "s": (0, 0, 1_000_000_000),
    "ms": (0, 0, 1_000_000),
    "us": (0, 0, 1_000),
    "ns": (0, 0, 1),
}
_ALIKE = {"µs": "us", "μs": "us"}
_ISO_UNITS = {
    **{"PY": "y", "PM": "mo", "PW": "w", "PD": "d"},
    **{"TH": "h", "TM": "m", "TS": "s"},
}
_PART = re.compile(r"([0-9]{1,19})(y|mo|w|d|h|ms|us|µs|μs|ns|m|s)")
_PLAIN = re.compile(rf"(?:{_PART.pattern})+")
_ISO = re.compile(r"P(?=[0-9T])([0-9YMWD]*)(?:T(?=[0-9])([0-9HMS]+))?")
_ISO_PART = re.compile(r"([0-9]{1,19})([YMWDHS])")
_MOST_MONTHS_OR_DAYS, _MOST_NANOSECONDS = 2**31 - 1, 2**63 - 1


def duration(value: Any) -> bytes:
    """``duration``."""
    text = value.removeprefix("-") if type(value) is str else ""
    parts = _iso_parts(text) if text.startswith("P") else _plain_parts(text)
    units = [unit for _, unit in parts]
    order = [unit for unit in _UNITS if unit in units]
    if not parts or units != order:
        raise Misfit(value, "is not a duration such as 1mo2d3h or P1M2DT3H")
    months, days, nanoseconds = (
        sum(number * _UNITS[unit][place] for number, unit in parts) for place in range(3)
    )
    if max(months, days) > _MOST_MONTHS_OR_DAYS or nanoseconds > _MOST_NANOSECONDS:
        raise Misfit(value, "is longer than a duration can be")
    sign = -1 if text != value else 1
    return duration_cell((sign * months, sign * days, sign * nanoseconds))[4:]


def _plain_parts(text: str) -> list[tuple[int, str]]:
    if not _PLAIN.fullmatch(text):
        return []
    return [(int(number), _ALIKE.get(unit, unit)) for number, unit in _PART.findall(text)]


def _iso_parts(text: str) -> list[tuple[int, str]]:
    whole = _ISO.fullmatch(text)
    if whole is None:
        return []
    parts: list[tuple[int, str]] = []
    for prefix, section in (("P", whole[1]), ("T", whole[2] or "")):
        found = _ISO_PART.findall(section)
        if "".join(number + unit for number, unit in found) != section:
            return []
        for number, unit in found:
            if prefix + unit not in _ISO_UNITS:
                return []
            parts.append((int(number), _ISO_UNITS[prefix + unit]))
    return parts
