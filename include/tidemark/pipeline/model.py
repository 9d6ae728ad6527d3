"""What a pipeline file declares: a source, a commit log, writers, schedules and policies.

A ``Pipeline`` is complete (defaults filled in, variables in paths replaced) and never changes. Building one
connects to nothing, and opens no file but the time zone database and the modules of the functions it names;
it holds ids of connections, never their secrets. What each key means is in ``docs/pipelines.md``; what may
not be in two files at once is in ``pipeline_conflicts``.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from tidemark.kafka.source_topics import SourceTopics
from tidemark.pipeline import checks
from tidemark.pipeline.choices import (
    CompactionPolicy,
    Consistency,
    FileFormat,
    Format,
    Isolation,
    OnFailure,
    ReplicationStrategy,
    SourceStart,
    StoppedWriters,
    WriterKind,
    WriterStart,
)
from tidemark.pipeline.parts import (
    CommitLog,
    Compaction,
    Cron,
    DeadLetterSettings,
    Declaration,
    Expiry,
    KafkaSource,
    Limits,
    Name,
    Source,
    SparkSettings,
)
from tidemark.pipeline.problems import Contradiction, Finding, Place, dotted, quoted
from tidemark.pipeline.writers import (
    AnyWriter,
    FilesDeclaration,
    JournalDeclaration,
    KafkaDeclaration,
    Replication,
    Tables,
    WriterDeclaration,
)

__all__ = [
    "AnyWriter",
    "CommitLog",
    "Compaction",
    "CompactionPolicy",
    "Consistency",
    "DeadLetterSettings",
    "Expiry",
    "FileFormat",
    "FilesDeclaration",
    "Format",
    "Isolation",
    "JournalDeclaration",
    "KafkaDeclaration",
    "KafkaSource",
    "Limits",
    "OnFailure",
    "Pipeline",
    "Replication",
    "ReplicationStrategy",
    "Source",
    "SourceStart",
    "SparkSettings",
    "StoppedWriters",
    "Tables",
    "WriterDeclaration",
    "WriterKind",
    "WriterStart",
]


class Pipeline(Declaration):
    """One pipeline file."""

    name: Name
    source: Source
    schedule: Cron | None = "*/5 * * * *"
    limits: Limits = Limits()
    log: CommitLog
    on_failure: OnFailure = OnFailure.STOP_WRITER
    stopped_writers: StoppedWriters = StoppedWriters.FAIL
    writers: Annotated[tuple[AnyWriter, ...], Field(min_length=1)]
    expiry: Expiry | None = None
    expectations: Name = "default"
    dead_letters: DeadLetterSettings | None = None
    spark: SparkSettings = SparkSettings()

    @property
    def journals(self) -> Iterator[tuple[int, JournalDeclaration]]:
        """The writers that put the journal into Cassandra, with their places in the list."""
        return (
            (i, writer) for i, writer in enumerate(self.writers) if isinstance(writer, JournalDeclaration)
        )

    @property
    def republishers(self) -> Iterator[tuple[int, KafkaDeclaration]]:
        """The writers that send messages back to Kafka, with their places in the list."""
        return ((i, writer) for i, writer in enumerate(self.writers) if isinstance(writer, KafkaDeclaration))

    @property
    def locations(self) -> Iterator[tuple[Place, str]]:
        """Every folder this pipeline writes into, with the key that names it."""
        yield ("log", "path"), self.log.path
        for i, writer in enumerate(self.writers):
            if isinstance(writer, FilesDeclaration):
                yield ("writers", i, "path"), writer.path

    @model_validator(mode="before")
    @classmethod
    def _fill_in_what_follows_from_other_keys(cls, data: Any) -> Any:
        """The log's path follows the name, its compaction policy the source's format."""
        log = data.get("log", {}) if isinstance(data, dict) else None
        if not isinstance(log, dict):
            return data
        log = {
            "path": f"${{TIDEMARK_HOME}}/log/{_name_or_stand_in(data.get('name'))}",
            "compaction": {},
            **log,
        }
        if isinstance(log["compaction"], dict):
            log["compaction"] = {"policy": _policy_for(data.get("source")), **log["compaction"]}
        return {**data, "log": log}

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        findings = [
            *self._names_twice(),
            *self._not_for_this_source(),
            *self._feeds_itself(),
            *self._letters_misdirected(),
            *self._targets_twice(),
        ]
        if findings:
            raise Contradiction(findings)
        return self

    def _names_twice(self) -> Iterator[Finding]:
        names = [writer.name for writer in self.writers]
        for i, name in enumerate(names):
            if name in names[:i]:
                yield Finding(
                    ("writers", i, "name"),
                    f"is `{name}`, as another writer's is. Give every writer its own name.",
                )

    def _not_for_this_source(self) -> Iterator[Finding]:
        kafka, journals = self.source.kafka, list(self.journals)
        if kafka.format is not Format.KAFKA_JOURNAL:
            needs = f"needs messages in format `kafka-journal`, but source.kafka.format is `{kafka.format}`"
            for i, _ in journals:
                yield Finding(("writers", i, "kind"), f"is `journal`, which {needs}. Change one of them.")
            if self.log.compaction.policy is CompactionPolicy.JOURNAL:
                place = ("log", "compaction", "policy")
                yield Finding(place, f"is `journal`, which {needs}. Use `latest`, `progress` or `none`.")
        if kafka.start is SourceStart.POINTERS and len(journals) != 1:
            yield Finding(
                ("source", "kafka", "start"),
                f"is `pointers`, which needs exactly one writer of kind `journal`, not {len(journals)}. "
                "Use `earliest`, or declare the writer whose keyspace has the pointers.",
            )

    def _feeds_itself(self) -> Iterator[Finding]:
        source = self.source.kafka
        for i, writer in self.republishers:
            if writer.connection == source.connection and source.reads(writer.topic):
                yield Finding(
                    ("writers", i, "topic"),
                    f"is `{writer.topic}`, which this pipeline reads: it would feed itself forever. "
                    "Write to another topic, or read others.",
                )

    def _letters_misdirected(self) -> Iterator[Finding]:
        if self.dead_letters is None:
            return
        source, letters = self.source.kafka, self.dead_letters
        connection, place = letters.connection or source.connection, ("dead_letters", "topic")
        if connection == source.connection and source.reads(letters.topic):
            yield Finding(
                place,
                f"is `{letters.topic}`, which this pipeline reads: it would feed itself forever. "
                "Use another topic.",
            )
        if any((w.connection, w.topic) == (connection, letters.topic) for _, w in self.republishers):
            yield Finding(
                place,
                f"is `{letters.topic}`, which a writer of this pipeline writes. Use a topic of its own.",
            )

    def _targets_twice(self) -> Iterator[Finding]:
        topics = [(writer.connection, writer.topic) for _, writer in self.republishers]
        for position, (i, republisher) in enumerate(self.republishers):
            if topics[position] in topics[:position]:
                yield Finding(
                    ("writers", i, "topic"),
                    f"is `{republisher.topic}`, as another writer's is. Give every writer its own topic.",
                )
        keyspaces = [(writer.connection, writer.keyspace) for _, writer in self.journals]
        for position, (i, writer) in enumerate(self.journals):
            if keyspaces[position] in keyspaces[:position]:
                yield Finding(
                    ("writers", i, "keyspace"),
                    f"is `{writer.keyspace}`, as another writer's is. Give every journal its own keyspace.",
                )
        locations = list(self.locations)
        for position, (place, path) in enumerate(locations):
            for other_place, other in locations[:position]:
                if checks.overlap(path, other):
                    yield Finding(
                        place,
                        f"is {quoted(path)}, which shares a folder with {dotted(other_place)}. "
                        "Give each a folder of its own.",
                    )


def _name_or_stand_in(name: Any) -> str:
    """The name; for one that is refused anyway, something that causes no second message."""
    try:
        return checks.name(name)
    except (TypeError, ValueError):
        return "unnamed"


def _policy_for(source: Any) -> CompactionPolicy:
    """The default: what a journal allows, where the source is one."""
    if isinstance(source, Source):
        source = source.model_dump()
    kafka = source.get("kafka") if isinstance(source, dict) else None
    message_format = kafka.get("format") if isinstance(kafka, dict) else None
    is_other = message_format in (Format.JSON, Format.RAW)
    return CompactionPolicy.LATEST if is_other else CompactionPolicy.JOURNAL


def source_topics(pipeline: Pipeline) -> SourceTopics:
    """The topics that the pipeline reads."""
    kafka = pipeline.source.kafka
    return SourceTopics(pipeline.name, kafka.topics, kafka.topic_prefixes, kafka.isolation)
