"""The parts of a pipeline file other than its writers: source, limits, commit log, expiry, Spark."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, ClassVar, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    Strict,
    model_validator,
)

from tidemark.kafka.topic_shape import TopicShape
from tidemark.pipeline import checks
from tidemark.pipeline.choices import CompactionPolicy, Format, Isolation, SourceStart
from tidemark.pipeline.problems import Contradiction, Finding
from tidemark.pipeline.quantities import (
    duration_text,
    parse_duration,
    parse_retention,
    parse_size,
    retention_text,
)


def each_once(items: tuple[str, ...]) -> tuple[str, ...]:
    """A list of names in which none stands twice."""
    twice = [i for i, item in enumerate(items) if item in items[:i]]
    if twice:
        raise Contradiction(Finding((i,), f"is `{items[i]}` for the second time. Remove it.") for i in twice)
    return items


Name = Annotated[str, AfterValidator(checks.name)]
Topic = Annotated[str, AfterValidator(checks.topic)]
Topics = Annotated[tuple[Topic, ...], Field(min_length=1), AfterValidator(each_once)]
ConnectionId = Annotated[str, AfterValidator(checks.connection)]
Cron = Annotated[str, AfterValidator(checks.cron)]
Location = Annotated[str, AfterValidator(checks.location)]
Expression = Annotated[str, AfterValidator(checks.expression)]
Size = Annotated[int, BeforeValidator(parse_size)]
Duration = Annotated[
    timedelta, BeforeValidator(parse_duration), PlainSerializer(duration_text, when_used="json")
]
Retention = Annotated[
    int, BeforeValidator(parse_retention), PlainSerializer(retention_text, when_used="json")
]
"""Milliseconds."""
Count = Annotated[int, Strict()]


class Declaration(BaseModel):
    """A part of a pipeline file: never changes, knows all its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    not_here: ClassVar[Mapping[str, str]] = {}
    """Keys people try here, with the reason why they are not taken."""


class TopicCreation(Declaration):
    """How ``tidemark topics create`` makes a topic; what is not said is the broker's default."""

    not_here: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("cleanup.policy", "cleanup_policy", "cleanup", "policy"),
        "Topics are created with cleanup.policy=delete: the records of a compacted one vanish one by one. "
        "Remove it.",
    )

    partitions: Annotated[Count, Field(ge=1, le=100_000)] | None = None
    replication: Annotated[Count, Field(ge=1, le=32_767)] | None = None
    retention: Retention | None = None

    @property
    def shape(self) -> TopicShape:
        """The same, in Kafka's units."""
        return TopicShape(self.partitions, self.replication, self.retention)


class KafkaSource(Declaration):
    """The topics a pipeline reads; those that begin with a prefix are listed again at each bind."""

    topics: Topics = ()
    topic_prefixes: Topics = ()
    format: Format = Format.KAFKA_JOURNAL
    start: SourceStart = SourceStart.EARLIEST
    connection: ConnectionId = "kafka_default"
    isolation: Isolation = Isolation.READ_COMMITTED
    create: TopicCreation = TopicCreation()

    @model_validator(mode="after")
    def _reads_something(self) -> Self:
        if not self.topics and not self.topic_prefixes:
            raise ValueError("names no topic. Add `topics` or `topic_prefixes`.")
        return self

    def reads(self, topic: str) -> bool:
        """Whether the pipeline reads this topic, should it exist."""
        return topic in self.topics or topic.startswith(self.topic_prefixes)


class Source(Declaration):
    """Where messages come from."""

    kafka: KafkaSource


class Limits(Declaration):
    """How much one run may do."""

    max_records_per_run: Annotated[Count, Field(ge=1)] = 1_000_000
    resume_singly: Annotated[Count, Field(ge=0)] = 10_000
    """After how many clean messages one at a time a resume goes on in bulk; 0 for never."""


class Compaction(Declaration):
    """When messages leave the commit log."""

    policy: CompactionPolicy
    min_lag: Duration = timedelta(hours=1)
    tombstones: Duration = timedelta(days=1)
    """How long ``latest`` keeps the last message of a key when it has no value."""
    schedule: Cron | None = "@daily"
    """When; without one, only by hand."""
    grace: Duration = timedelta(hours=1)
    """How long files stay that the log does not name any more."""


class CommitLog(Declaration):
    """Where the commit log is kept, and how."""

    path: Location
    segment_bytes: Size = 10**9
    compaction: Compaction


class Expiry(Declaration):
    """When expired entities are looked for; without a schedule, only by hand."""

    schedule: Cron | None = "@daily"
    timezone: Annotated[str, AfterValidator(checks.timezone)] = "UTC"
    max_purges: Annotated[Count, Field(ge=1)] = 100_000
    """A run that wants to purge more than so many entities stops and asks a person."""


class DeadLetterSettings(Declaration):
    """A Kafka topic that gets a copy of every message that is let pass unwritten."""

    topic: Topic
    connection: ConnectionId | None = None
    """The source's, when left out."""


class SparkSettings(Declaration):
    """Where Spark applications run."""

    connection: ConnectionId = "spark_default"
