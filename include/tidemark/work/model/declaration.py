"""The declaration of one work journal, a file in ``include/work``: its columns and its rules.

Only name, key and payload are required. A changed declaration does not change existing entries.
``docs/work-journal.md`` describes each key. Connects to nothing.
"""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from tidemark.pipeline import checks
from tidemark.pipeline.journal import Replication
from tidemark.pipeline.parts import ConnectionId, Count, Declaration, Duration, Name, Size, Topic
from tidemark.pipeline.problems import Disagreement, Finding
from tidemark.work.model.buckets import Period
from tidemark.work.model.columns import ColumnType
from tidemark.work.model.entry import LARGEST_COUNT, LARGEST_PRIORITY
from tidemark.work.model.rules import FURTHEST, OnMerge, Rules

MILLISECOND = timedelta(milliseconds=1)
LONGEST = FURTHEST * MILLISECOND
PREDEFINED = frozenset(
    ["inserted", "expires", "priority", "process", "status", "start", "timeouts", "key", "payload"]
)
"""The columns that every journal has; a declaration cannot use their names."""


def _columns(columns: dict[str, ColumnType]) -> dict[str, ColumnType]:
    findings = [
        Finding((name,), "is a column that every journal has. Choose another name.")
        for name in columns
        if name in PREDEFINED
    ]
    if findings:
        raise Disagreement(findings)
    return columns


DeclaredColumns = Annotated[dict[str, ColumnType], Field(min_length=1), AfterValidator(_columns)]
Counter = Annotated[Count, Field(ge=1, le=LARGEST_COUNT)]


def _bounded(duration: timedelta) -> timedelta:
    if duration > LONGEST:
        raise ValueError(f"is longer than ten years. Write at most {LONGEST.days}d.")
    return duration


Lasting = Annotated[Duration, AfterValidator(_bounded)]
"""A duration that becomes a time to live or a due time in Cassandra: at most ten years."""


class BackOff(Declaration):
    """The backoff of failed entries: doubled with each failure, up to ``most``."""

    first: Duration = timedelta(seconds=5)
    most: Lasting = timedelta(hours=1)

    @model_validator(mode="after")
    def _grows(self) -> Self:
        if not timedelta() < self.first <= self.most:
            raise ValueError("has a `first` of nothing, or more than its `most`. Give 0 < first ≤ most.")
        return self


class Wake(Declaration):
    """The topic over which inserts wake waiting processes; without it they poll."""

    topic: Topic
    connection: ConnectionId = "kafka_default"


class DeadReport(StrEnum):
    """What ``work.sweep`` does about dead letters that no operator has marked as seen.

    Attributes:
        FAIL: Its task ``report_dead`` fails.
        WARN: It logs a warning and emits an event of the asset.
        NEVER: Nothing.
    """

    FAIL = "fail"
    WARN = "warn"
    NEVER = "never"


class WorkDeclaration(Declaration):
    """One work journal."""

    name: Name
    key: DeclaredColumns
    payload: DeclaredColumns
    version: Annotated[Count, Field(ge=1)] = 1
    """The version of the payload's columns, to be incremented when they change."""
    time_limit: Lasting = timedelta(hours=1)
    max_timeouts: Counter = 5
    max_failures: Counter = 25
    backoff: BackOff = BackOff()
    on_merge: OnMerge = OnMerge.LARGEST
    max_delay: Duration | None = None
    slow_from: Annotated[Count, Field(ge=1, le=LARGEST_PRIORITY)] | None = None
    bucket: Period = Period.HOUR
    shards: Annotated[Count, Field(ge=1, le=64)] = 1
    payload_limit: Size = 64 * 1024
    max_skew: Duration = timedelta(minutes=5)
    settle: Duration = timedelta(minutes=1)
    history: Lasting | None = None
    dead_letters: Lasting = timedelta(days=90)
    wake: Wake | None = None
    connection: ConnectionId = "cassandra_default"
    keyspace: Annotated[str, AfterValidator(checks.keyspace)] = "work"
    replication: Replication | None = None
    """None: three copies where the data centre has three or more nodes, else one."""
    report_dead: DeadReport = DeadReport.FAIL

    @property
    def rules(self) -> Rules:
        """The settings that decisions about entries depend on."""
        return Rules(
            time_limit=milliseconds(self.time_limit),
            max_timeouts=self.max_timeouts,
            max_failures=self.max_failures,
            backoff_first=milliseconds(self.backoff.first),
            backoff_most=milliseconds(self.backoff.most),
            max_delay=None if self.max_delay is None else milliseconds(self.max_delay),
            on_merge=self.on_merge,
        )

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        findings = [
            Finding((name,), "must be longer than nothing. Write for example 1m.")
            for name in ("time_limit", "settle", "dead_letters", "history")
            if getattr(self, name) == timedelta()
        ]
        if findings:
            raise Disagreement(findings)
        return self


def milliseconds(duration: timedelta) -> int:
    """A duration in milliseconds."""
    return duration // MILLISECOND
