"""The parts of a pipeline file other than its writers: source, limits, commit log, expiry, Spark."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    Strict,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from tidemark.kafka.topic_shape import TopicShape
from tidemark.pipeline import checks
from tidemark.pipeline.kinds import FORMATS, KAFKA_JOURNAL, FormatName, PolicyName
from tidemark.pipeline.problems import Disagreement, Finding
from tidemark.pipeline.quantities import (
    duration_text,
    parse_duration,
    parse_retention,
    parse_size,
    retention_text,
)


def each_once(items: tuple[str, ...]) -> tuple[str, ...]:
    """Validator: raises ``Disagreement`` for every name that occurs a second time."""
    twice = [i for i, item in enumerate(items) if item in items[:i]]
    if twice:
        raise Disagreement(Finding((i,), f"is `{items[i]}` for the second time. Remove it.") for i in twice)
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
    """A part of a pipeline file: immutable, with unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    not_here: ClassVar[Mapping[str, str]] = {}
    """Keys that users may try here, each with the advice that its refusal shows."""


D = TypeVar("D", bound=Declaration)


def read_as(model: type[D], data: Any, info: ValidationInfo, tag: str) -> D:
    """``data`` validated by the model that a word in the file, ``tag``, selects.

    Validation errors get ``tag`` as the first part of their place, like those of pydantic's tagged unions:
    the error texts need it to list the known keys.
    """
    try:
        return model.model_validate(data, context=info.context)
    except ValidationError as error:
        raise ValidationError.from_exception_data(model.__name__, list(_below(tag, error))) from None


def _below(tag: str, error: ValidationError) -> Iterator[InitErrorDetails]:
    for details in error.errors(include_url=False):
        place = (tag, *details["loc"])
        try:
            again = InitErrorDetails(
                type=details["type"], loc=place, input=details["input"], ctx=details.get("ctx", {})
            )
            ValidationError.from_exception_data(tag, [again])
        except (KeyError, TypeError, ValueError):  # a custom error: its type is unknown to pydantic
            own = PydanticCustomError("value", "{said}", {"said": details["msg"]})
            again = InitErrorDetails(type=own, loc=place, input=details["input"])
        yield again


class SourceStart(StrEnum):
    """Where the first binding begins."""

    EARLIEST = "earliest"
    """At the earliest offsets that Kafka has."""
    POINTERS = "pointers"
    """At the pointers that another replicator has written to the journal's keyspace."""


class TopicCreation(Declaration):
    """How ``tidemark topics create`` creates a topic; None is the broker's default."""

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
        """These settings in Kafka's units."""
        return TopicShape(self.partitions, self.replication, self.retention)


class Isolation(StrEnum):
    """Which records of Kafka transactions are read."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


class KafkaSource(Declaration):
    """The topics a pipeline reads; every bind lists the topics of ``topic_prefixes`` again."""

    topics: Topics = ()
    topic_prefixes: Topics = ()
    format: FormatName = KAFKA_JOURNAL
    start: SourceStart = SourceStart.EARLIEST
    connection: ConnectionId = "kafka_default"
    isolation: Isolation = Isolation.READ_COMMITTED
    create: TopicCreation = TopicCreation()

    @model_validator(mode="after")
    def _reads_something(self) -> Self:
        if not self.topics and not self.topic_prefixes:
            raise ValueError("names no topic. Add `topics` or `topic_prefixes`.")
        return self

    @model_validator(mode="after")
    def _has_one_topic_where_its_format_needs_that(self) -> Self:
        if not FORMATS.find(self.format).has_fixed_partitions:
            return self
        findings = []
        if self.topic_prefixes:
            text = (
                f"is not taken with format `{self.format}`: its operations are in one topic. Name it in "
                "`topics`."
            )
            findings.append(Finding(("topic_prefixes",), text))
        if len(self.topics) > 1:
            text = (
                f"names {len(self.topics)} topics, and with format `{self.format}` there is exactly one. "
                "Give every topic a pipeline of its own."
            )
            findings.append(Finding(("topics",), text))
        if findings:
            raise Disagreement(findings)
        return self

    def reads(self, topic: str) -> bool:
        """Whether the pipeline reads a topic of this name."""
        return topic in self.topics or topic.startswith(self.topic_prefixes)


class Source(Declaration):
    """Where messages come from."""

    kafka: KafkaSource


class RunLimits(Declaration):
    """How much one run may do."""

    max_records_per_run: Annotated[Count, Field(ge=1)] = 1_000_000
    max_records_in_process: Annotated[Count, Field(ge=0)] = 5_000
    """The most offsets of a binding that a task captures and delivers itself where the engine stays up: for
    so few, Spark's own steps take longer than the work. 0: Spark does everything."""
    resume_singly: Annotated[Count, Field(ge=0)] = 10_000
    """Messages in a row that a resume delivers singly, without a failure, before it continues in bulk; 0: it
    never does."""


class OnFailure(StrEnum):
    """The parts of the pipeline that wait for a stopped writer."""

    STOP_WRITER = "stop_writer"
    """Only the writer."""
    STOP_PIPELINE = "stop_pipeline"
    """The writer, capture and all other writers."""


class CompactionDeclaration(Declaration):
    """Which messages compaction drops from the commit log, and when."""

    policy: PolicyName
    min_lag: Duration = timedelta(hours=1)
    tombstones: Duration = timedelta(days=1)
    """How long ``latest`` keeps the last message of a key when it has no value."""
    schedule: Cron | None = "@daily"
    """When compaction runs; None: only by hand."""
    grace: Duration = timedelta(hours=1)
    """How long files are kept after the log has stopped naming them."""


class CommitLog(Declaration):
    """The commit log's folder, segment size and compaction."""

    path: Location
    segment_bytes: Size = 10**9
    keep_bindings: Duration | None = None
    """None: a week, or ``min_lag`` where that is longer."""
    compaction: CompactionDeclaration

    @model_validator(mode="after")
    def _keeps_bindings_that_compaction_needs(self) -> Self:
        if self.bindings_kept < self.compaction.min_lag:
            kept, needed = duration_text(self.bindings_kept), duration_text(self.compaction.min_lag)
            text = (
                f"is `{kept}`, but compaction.min_lag is `{needed}`, and compaction needs the bindings of "
                f"that time. Keep them for `{needed}` or longer."
            )
            raise Disagreement([Finding(("keep_bindings",), text)])
        return self

    @property
    def bindings_kept(self) -> timedelta:
        """How long bindings stay in the control plane at least."""
        if self.keep_bindings is None:
            return max(timedelta(days=7), self.compaction.min_lag)
        return self.keep_bindings


class Expiry(Declaration):
    """When expired entities are purged; without a schedule, only by hand."""

    schedule: Cron | None = "@daily"
    timezone: Annotated[str, AfterValidator(checks.timezone)] = "UTC"
    max_purges: Annotated[Count, Field(ge=1)] = 100_000
    """A run that would purge more entities stops and asks an operator."""


def _every(every: timedelta) -> timedelta:
    return _between(every, timedelta(seconds=1), timedelta(minutes=1))


def _lasts(lasts: timedelta) -> timedelta:
    return _between(lasts, timedelta(seconds=10), timedelta(hours=1))


def _between(given: timedelta, least: timedelta, most: timedelta) -> timedelta:
    if not least <= given <= most:
        texts = [duration_text(one) for one in (given, least, most)]
        raise ValueError("is `{}`. It must be between {} and {}.".format(*texts))
    return given


class FollowDeclaration(Declaration):
    """How ``<pipeline>.follow`` repeats its rounds."""

    every: Annotated[Duration, AfterValidator(_every)] = timedelta(seconds=1)
    """From the beginning of a round to the beginning of the next one."""
    lasts: Annotated[Duration, AfterValidator(_lasts)] = Field(timedelta(minutes=10), alias="for")
    """How long one run of the DAG repeats rounds before the next run begins."""


class DeadLetterSettings(Declaration):
    """A Kafka topic that receives a copy of every acknowledged message that was not written."""

    topic: Topic
    connection: ConnectionId | None = None
    """None: the source's connection."""


class SparkSettings(Declaration):
    """Where Spark applications run."""

    connection: ConnectionId = "spark_default"
