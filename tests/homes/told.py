"""What a reader sees of a journal, and what commands answer, in a form that a JSON file can keep."""

from collections.abc import Mapping
from datetime import date
from typing import Any


def plain(visible: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Entities as ``read_visible`` has them, by key: rows as a list, bytes in hexadecimal digits."""
    return {key: _plain(entity) for key, entity in sorted(visible.items())}


def _plain(value: Any) -> Any:
    match value:
        case Mapping() if any(isinstance(key, tuple) for key in value):
            return [[*key, _plain(below)] for key, below in sorted(value.items())]
        case Mapping():
            return {key: _plain(below) for key, below in sorted(value.items())}
        case frozenset():
            return sorted(value)
        case bytes():
            return value.hex()
        case date():
            return value.isoformat()
    return value


def told_before(now: Any, before: Any) -> Any:
    """An answer without what an earlier version had no key for: later ones may say more, never less."""
    match now, before:
        case dict(), dict():
            return {key: told_before(now[key], before[key]) for key in now if key in before}
        case list(), list() if len(now) == len(before):
            return [told_before(*pair) for pair in zip(now, before, strict=True)]
    return now
