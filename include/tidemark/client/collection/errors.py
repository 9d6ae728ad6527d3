"""Errors of a collection's readers apart from those about times, which are in ``outputs.reader_errors``."""

from typing import Any

from tidemark.errors import TidemarkError, with_fields


class CollectionError(TidemarkError):
    """A collection cannot be read, or was asked for in a way that has no answer."""


@with_fields
class NotACollection(CollectionError):
    """A pipeline's file has no such collection."""

    pipeline: str
    problem: str

    text = "{pipeline}: {problem} Nothing was read."


@with_fields
class BadTime(CollectionError, ValueError):
    """A value that is no time of a collection."""

    given: Any
    problem: str

    text = (
        "{given!r} is no time of a collection: {problem}. Nothing was read. Give microseconds since 1970, or "
        "a date with a time zone, such as 2026-11-17T10:00:00Z."
    )


@with_fields
class CollectionUnreadable(CollectionError):
    """Cassandra did not answer a read."""

    pipeline: str
    writer: str
    reason: str

    text = (
        "{pipeline}/{writer}: Cassandra did not answer ({reason}). Nothing of this read counts; what was "
        "returned before it is right. See that its nodes are up, then read again."
    )


@with_fields
class ReaderClosed(CollectionError):
    """A collection, or a read of one, was used after it was closed."""

    pipeline: str
    writer: str

    text = "{pipeline}/{writer}: this reader is closed. Nothing was read. Open another one."


@with_fields
class UnknownPin(CollectionError):
    """No pin has this name."""

    pipeline: str
    writer: str
    name: str
    known: tuple[str, ...]

    @property
    def pins(self) -> str:
        """The pins in one line."""
        return ", ".join(self.known) or "none"

    text = (
        "{pipeline}/{writer}: there is no pin {name}. Nothing was changed. Pins: {pins}. Readers end by "
        "themselves: tidemark collection readers {pipeline} {writer}"
    )
