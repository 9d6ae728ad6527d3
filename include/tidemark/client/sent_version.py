"""The version that actions carry which this library sends."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def sent_version() -> str:
    """As kafka-journal's clients send theirs, with whose it is."""
    try:
        return f"tidemark-{version('tidemark')}"
    except PackageNotFoundError:
        return "unknown"
