"""What a journal writer refuses to go on with: errors with fields, each with the way out."""

from collections.abc import Iterable

from tidemark.writers.errors import WriterError


class TablesChanged(WriterError):
    """A pointer is not where this writer left it: somebody else wrote, restored or truncated the tables."""

    needs_person = True

    def __init__(
        self,
        pipeline: str,
        writer: str,
        keyspace: str,
        topic: str,
        partition: int,
        found: int,
        least: int,
        most: int | None,
    ) -> None:
        says = "has no pointer" if found < 0 else f"says offset {found}"
        wanted = f"{least} at least" if found < least else f"{most} at most"
        super().__init__(
            f"{pipeline}/{writer}: the tables of keyspace {keyspace} changed under us. For "
            f"{topic}/{partition} pointer2 {says}, but it should be {wanted}. Nothing was written. "
            "If a kafka-journal replicator wrote there, stop it and run: "
            f"tidemark journal take-over {pipeline} {writer}. Otherwise restore the tables and resume; to "
            "fill them anew from the log, add a writer with a new keyspace, or empty these and run: "
            f"tidemark offsets rewind {pipeline} {writer} -1. A new pipeline continues another replicator's "
            "work with `source.kafka.start: pointers`."
        )
        self.pipeline, self.writer, self.keyspace = pipeline, writer, keyspace
        self.topic, self.partition = topic, partition
        self.found, self.least, self.most = found, least, most


class OffsetsBegunAnew(WriterError):
    """A partition was truncated: its offsets say no longer what came first."""

    needs_person = True

    def __init__(
        self, pipeline: str, writer: str, topic: str, partition: int, lower: int, before: int
    ) -> None:
        super().__init__(
            f"{pipeline}/{writer}: the offsets of {topic}/{partition} begin anew at {lower}, although "
            f"{before} was bound before. Heads and pointers compare offsets, so readers would never see "
            "these messages. Nothing was written. Give the topic a pipeline of its own with a new keyspace, "
            "and add a writer here whose `namespaces` leave it out."
        )
        self.pipeline, self.writer, self.topic, self.partition = pipeline, writer, topic, partition
        self.lower, self.before = lower, before


class JournalUnclear(WriterError):
    """It is not clear which journal of a pipeline is meant."""

    def __init__(self, pipeline: str, asked: str | None, known: Iterable[str]) -> None:
        self.pipeline, self.asked, self.known = pipeline, asked, tuple(known)
        meant = f"it has no journal {asked}" if asked else "say which of its journals is meant"
        super().__init__(f"{pipeline}: {meant}; there is: {', '.join(self.known) or 'none'}.")
