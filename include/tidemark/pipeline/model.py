"""What a pipeline file declares: a source, a commit log, writers, schedules and policies.

A ``Pipeline`` is complete (defaults filled in, variables in paths replaced) and never changes. Building one
connects to nothing, and opens no file but the time zone database and the modules of the functions it names;
it holds ids of connections, never their secrets. It knows no kind of writer but the journal, which is what
clients, expiry and take-overs are about. What each key means is in ``docs/pipelines.md``; what may
not be in two files at once is in ``conflicts``.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from tidemark.kafka.source_topics import SourceTopics
from tidemark.pipeline import checks
from tidemark.pipeline.agent import OPLOG, AgentDeclaration
from tidemark.pipeline.extensions import UnknownKind
from tidemark.pipeline.journal import (
    Consistency,
    JournalDeclaration,
    Replication,
    ReplicationStrategy,
    TableNames,
)
from tidemark.pipeline.kinds import FORMATS, KAFKA_JOURNAL, POLICIES
from tidemark.pipeline.parts import (
    CommitLog,
    CompactionDeclaration,
    Cron,
    DeadLetterSettings,
    Declaration,
    Expiry,
    FollowDeclaration,
    Isolation,
    KafkaSource,
    Name,
    OnFailure,
    RunLimits,
    Source,
    SourceStart,
    SparkSettings,
)
from tidemark.pipeline.problems import Disagreement, Finding, Place, dotted, quoted
from tidemark.pipeline.writers import (
    AnyWriter,
    FolderClaim,
    TargetClaim,
    TopicClaim,
    WriterDeclaration,
    WriterStart,
)

__all__ = [
    "AgentDeclaration",
    "AnyWriter",
    "CommitLog",
    "CompactionDeclaration",
    "Consistency",
    "DeadLetterSettings",
    "Expiry",
    "FollowDeclaration",
    "Isolation",
    "JournalDeclaration",
    "KafkaSource",
    "OnFailure",
    "Pipeline",
    "Replication",
    "ReplicationStrategy",
    "RunLimits",
    "Source",
    "SourceStart",
    "SparkSettings",
    "StoppedWriters",
    "TableNames",
    "WriterDeclaration",
    "WriterStart",
]


class StoppedWriters(StrEnum):
    """The result of a run of ``replicate`` while a failure keeps a writer's gate closed.

    Attributes:
        FAIL: It fails, so that the stop stays visible.
        SKIP: It succeeds without that writer.
    """

    FAIL = "fail"
    SKIP = "skip"


class Pipeline(Declaration):
    """One pipeline file."""

    name: Name
    source: Source
    schedule: Cron | None = "*/5 * * * *"
    limits: RunLimits = RunLimits()
    log: CommitLog
    on_failure: OnFailure = OnFailure.STOP_WRITER
    stopped_writers: StoppedWriters = StoppedWriters.FAIL
    writers: Annotated[tuple[AnyWriter, ...], Field(min_length=1)]
    follow: FollowDeclaration | None = None
    agent: AgentDeclaration | None = None
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
    def locations(self) -> Iterator[tuple[Place, str]]:
        """Every folder this pipeline writes into, with the key that names it."""
        yield ("log", "path"), self.log.path
        for i, writer in enumerate(self.writers):
            for claim in writer.claims():
                if isinstance(claim, FolderClaim):
                    yield ("writers", i, claim.key), claim.path

    @property
    def folders_of_renditions(self) -> Iterator[tuple[Place, str]]:
        """The folders of writers whose renditions get folders beside them, with the key that names each."""
        for i, writer in enumerate(self.writers):
            for claim in writer.claims():
                if isinstance(claim, FolderClaim) and claim.has_renditions:
                    yield ("writers", i, claim.key), claim.path

    @property
    def targets(self) -> Iterator[tuple[Place, TargetClaim | TopicClaim]]:
        """Everything but folders that its writers claim for themselves, with the key that names it."""
        for i, writer in enumerate(self.writers):
            for claim in writer.claims():
                if not isinstance(claim, FolderClaim):
                    yield ("writers", i, claim.key), claim

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
            raise Disagreement(findings)
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
        for i, writer in enumerate(self.writers):
            if needs := self._needs(writer.needed_formats):
                key = writer.key_of_formats
                text = f"is `{getattr(writer, key)}`, which {needs}. Change one of them."
                yield Finding(("writers", i, key), text)
        policy = POLICIES.find(self.log.compaction.policy)
        if needs := self._needs(policy.formats):
            place = ("log", "compaction", "policy")
            yield Finding(place, f"is `{policy.name}`, which {needs}. Use `latest`, `progress` or `none`.")
        if self.agent and kafka.format != OPLOG:
            text = f"needs messages in format `{OPLOG}`, but source.kafka.format is `{kafka.format}`."
            yield Finding(("agent",), f"{text} Remove it, or change the format.")
        if kafka.start is SourceStart.POINTERS and len(journals) != 1:
            yield Finding(
                ("source", "kafka", "start"),
                f"is `pointers`, which needs exactly one writer of kind `journal`, not {len(journals)}. "
                "Use `earliest`, or declare the writer whose keyspace has the pointers.",
            )

    def _needs(self, formats: frozenset[str] | None) -> str | None:
        """What a writer or a policy for these formats lacks in this source; None where it lacks nothing."""
        found = self.source.kafka.format
        if formats is None or found in formats:
            return None
        wanted = " or ".join(f"`{one}`" for one in sorted(formats))
        return f"needs messages in format {wanted}, but source.kafka.format is `{found}`"

    def _feeds_itself(self) -> Iterator[Finding]:
        source = self.source.kafka
        for place, claim in self.targets:
            if not isinstance(claim, TopicClaim) or claim.connection != source.connection:
                continue
            if source.reads(claim.topic):
                yield Finding(
                    place,
                    f"is `{claim.topic}`, which this pipeline reads: it would feed itself forever. "
                    "Write to another topic, or read others.",
                )
            elif claim.has_renditions:
                read = checks.topics_of_renditions(claim.topic, source.topics, source.topic_prefixes)
                for topic in read:
                    yield Finding(
                        place,
                        f"is `{claim.topic}`, and this pipeline reads `{topic}`: a rendition of the writer "
                        "would feed the pipeline. Write to another topic, or read others.",
                    )

    def _letters_misdirected(self) -> Iterator[Finding]:
        if self.dead_letters is None:
            return
        source, letters, place = self.source.kafka, self.dead_letters, ("dead_letters", "topic")
        claimed = TopicClaim("topic", letters.connection or source.connection, letters.topic)
        if claimed.connection == source.connection and source.reads(letters.topic):
            yield Finding(
                place,
                f"is `{letters.topic}`, which this pipeline reads: it would feed itself forever. "
                "Use another topic.",
            )
        if any(claim.identity == claimed.identity for _, claim in self.targets):
            yield Finding(
                place,
                f"is `{letters.topic}`, which a writer of this pipeline writes. Use a topic of its own.",
            )

    def _targets_twice(self) -> Iterator[Finding]:
        taken: set[tuple[str, ...]] = set()
        for place, claim in self.targets:
            if claim.identity in taken:
                yield Finding(
                    place,
                    f"is `{claim.shown}`, as another writer's is. Give every writer its own {claim.key}.",
                )
            taken.add(claim.identity)
        locations = list(self.locations)
        for position, (place, path) in enumerate(locations):
            for other_place, other in locations[:position]:
                if checks.overlap(path, other):
                    yield Finding(
                        place,
                        f"is {quoted(path)}, which shares a folder with {dotted(other_place)}. "
                        "Give each a folder of its own.",
                    )
        for place, path in self.folders_of_renditions:
            for other_place, other in locations:
                if checks.overlap_of_renditions(path, other):
                    yield Finding(
                        other_place,
                        f"is {quoted(other)}, inside a folder that a rendition of {dotted(place)} would get. "
                        "Give it a folder of its own.",
                    )


def _name_or_stand_in(name: Any) -> str:
    """The name; for one that is refused anyway, something that causes no second message."""
    try:
        return checks.name(name)
    except (TypeError, ValueError):
        return "unnamed"


def _policy_for(source: Any) -> str:
    """The default policy: the one that the source's format declares."""
    if isinstance(source, Source):
        source = source.model_dump()
    kafka = source.get("kafka") if isinstance(source, dict) else None
    named = kafka.get("format", KAFKA_JOURNAL) if isinstance(kafka, dict) else KAFKA_JOURNAL
    try:
        return FORMATS.find(str(named)).policy
    except (UnknownKind, ValueError):  # refused where it stands; no second message about it
        return "none"


def source_topics(pipeline: Pipeline) -> SourceTopics:
    """The topics that the pipeline reads."""
    kafka = pipeline.source.kafka
    return SourceTopics(pipeline.name, kafka.topics, kafka.topic_prefixes, kafka.isolation)
