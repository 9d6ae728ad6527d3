"""Errors that stop a journal writer, with fields and with what an operator can do."""

from tidemark.errors import with_fields
from tidemark.writers.errors import WriterError


@with_fields
class TablesChanged(WriterError):
    """A pointer is not where this writer left it: another process changed or truncated the tables."""

    needs_person = True

    pipeline: str
    writer: str
    keyspace: str
    topic: str
    partition: int
    found: int
    least: int
    most: int | None

    def __str__(self) -> str:
        says = "has no pointer" if self.found < 0 else f"says offset {self.found}"
        wanted = f"{self.least} at least" if self.found < self.least else f"{self.most} at most"
        return (
            f"{self.pipeline}/{self.writer}: the tables of keyspace {self.keyspace} changed under us. For "
            f"{self.topic}/{self.partition} pointer2 {says}, but it should be {wanted}. Nothing was "
            "written. If a kafka-journal replicator wrote there, stop it and run: tidemark journal "
            f"take-over {self.pipeline} {self.writer}. Otherwise restore the tables and resume; to fill "
            "them anew from the log, add a writer with a new keyspace, or empty these and run: tidemark "
            f"offsets rewind {self.pipeline} {self.writer} -1. A new pipeline continues another "
            "replicator's work with `source.kafka.start: pointers`."
        )


@with_fields
class OffsetsBegunAnew(WriterError):
    """A partition was truncated, so its offsets no longer give the order of its messages."""

    needs_person = True

    pipeline: str
    writer: str
    topic: str
    partition: int
    lower: int
    before: int

    text = (
        "{pipeline}/{writer}: the offsets of {topic}/{partition} begin anew at {lower}, although {before} "
        "was bound before. Heads and pointers compare offsets, so readers would never see these messages. "
        "Nothing was written. Give the topic a pipeline of its own with a new keyspace, and add a writer "
        "here whose `namespaces` leave it out."
    )


@with_fields
class JournalUnclear(WriterError):
    """The journal of a pipeline that is meant is ambiguous or unknown."""

    pipeline: str
    asked: str | None
    known: tuple[str, ...]

    def __str__(self) -> str:
        meant = f"it has no journal {self.asked}" if self.asked else "say which of its journals is meant"
        return f"{self.pipeline}: {meant}; there is: {', '.join(self.known) or 'none'}."
