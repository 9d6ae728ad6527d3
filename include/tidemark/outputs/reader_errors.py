"""Errors of readers. Each names pipeline and writer; nothing was read, and nothing was removed."""

from tidemark.errors import with_fields
from tidemark.outputs.errors import OutputError


@with_fields
class StillNeeded(OutputError):
    """A reader may ask for times that would be forgotten."""

    pipeline: str
    writer: str
    since: int
    reader: str
    who: str
    capability: int

    text = (
        "{pipeline}/{writer}: times up to {since} cannot be forgotten: reader {reader} ({who}) holds "
        "{capability}. Nothing was removed. It goes on when the reader has moved on, has ended, or its term "
        "is over."
    )


@with_fields
class NotYet(OutputError):
    """A time that is not complete."""

    pipeline: str
    writer: str
    t: int
    frontier: int

    text = (
        "{pipeline}/{writer}: time {t} is not readable yet; times before {frontier} are. Nothing was read. "
        "Ask again after the next delivery."
    )


@with_fields
class Forgotten(OutputError):
    """A time whose rows may have been removed."""

    pipeline: str
    writer: str
    t: int
    since: int

    text = (
        "{pipeline}/{writer}: time {t} is no longer readable; since is {since}. Nothing was read. Ask for "
        "{since} or later. To keep a time, pin it: tidemark collection pin {pipeline} {writer} --at {since}"
    )


@with_fields
class ReaderExpired(OutputError):
    """A reader that did not renew its capability in time."""

    pipeline: str
    writer: str
    reader: str

    text = (
        "{pipeline}/{writer}: the term of reader {reader} is over, so its times may have been removed. "
        "Nothing was read. Register again, and start from a time that is readable then."
    )


@with_fields
class CapabilityMovedBack(OutputError):
    """A reader asked for times that it has given up."""

    pipeline: str
    writer: str
    reader: str
    capability: int
    wanted: int

    text = (
        "{pipeline}/{writer}: reader {reader} holds {capability} and cannot move back to {wanted}, whose "
        "rows may have been removed. Nothing was changed. Register another reader for older times."
    )


@with_fields
class ReaderNameTaken(OutputError):
    """Two readers with one id."""

    pipeline: str
    writer: str
    reader: str
    who: str

    text = (
        "{pipeline}/{writer}: reader {reader} exists already ({who}). Nothing was registered. Give every "
        "reader an id of its own."
    )
