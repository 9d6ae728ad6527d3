"""The kinds of writers a pipeline file can declare.

The settings of a writer only; what it does with messages is in ``tidemark.writers``, one file per kind.
"""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from tidemark.pipeline import checks
from tidemark.pipeline.choices import Consistency, FileFormat, ReplicationStrategy, WriterKind, WriterStart
from tidemark.pipeline.parts import (
    ConnectionId,
    Count,
    Declaration,
    Expression,
    Location,
    Name,
    Topic,
    TopicCreation,
)
from tidemark.pipeline.problems import Contradiction, Finding
from tidemark.pipeline.transforms import Transforms

Keyspace = Annotated[str, AfterValidator(checks.keyspace)]
Table = Annotated[str, AfterValidator(checks.identifier)]

_NOT_SIMPLE = (
    "is not a key of SimpleStrategy. Use `replication_factor`; factors per data centre need "
    "`class: NetworkTopologyStrategy`."
)
_ODD_CENTRE = "is not the name of a data centre. Use letters, digits, ., - and _ only."


def _not_latest(start: WriterStart) -> WriterStart:
    if start is WriterStart.LATEST:
        raise ValueError(
            "cannot be `latest` for a journal: its pointers would promise messages nobody wrote. "
            "Use `earliest`."
        )
    return start


def _not_recreated(start: WriterStart) -> WriterStart:
    if start is WriterStart.RECREATED:
        raise ValueError(
            "can be `recreated` for a journal only: every other writer takes a topic that was made again "
            "like any other. Use `earliest` or `latest`."
        )
    return start


StartAnywhere = Annotated[WriterStart, AfterValidator(_not_recreated)]


class Tables(Declaration):
    """The names of a journal's tables."""

    journal: Table = "journal"
    metajournal: Table = "metajournal"
    pointer2: Table = "pointer2"
    setting: Table = "setting"
    locks: Table = "locks"

    @model_validator(mode="after")
    def _all_different(self) -> Self:
        taken: dict[str, str] = {}
        findings = [
            Finding((key,), f"is `{table}`, as `{taken[table]}` is. Give every table its own name.")
            for key, table in self
            if taken.setdefault(table, key) != key
        ]
        if findings:
            raise Contradiction(findings)
        return self


class Replication(Declaration):
    """How many copies of a keyspace there are: ``replication_factor``, or one factor per data centre."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Annotated[Count, Field(ge=1)]]

    strategy: ReplicationStrategy = Field(ReplicationStrategy.SIMPLE, alias="class")

    @property
    def factors(self) -> dict[str, int]:
        """Copies by data centre; ``replication_factor`` for all of them."""
        return dict(self.__pydantic_extra__)

    @model_validator(mode="after")
    def _has_the_factors_of_its_class(self) -> Self:
        factors = self.factors
        if self.strategy is ReplicationStrategy.SIMPLE:
            centres = [Finding((key,), _NOT_SIMPLE) for key in factors if key != "replication_factor"]
            if centres:
                raise Contradiction(centres)
            if not factors:
                raise ValueError("has no factor. Add `replication_factor`.")
        if not factors:
            raise ValueError("has no factor. Add the data centres, such as `dc1: 3`.")
        odd = [centre for centre in factors if not re.fullmatch(r"[A-Za-z0-9._-]+", centre)]
        if odd:
            raise Contradiction(Finding((centre,), _ODD_CENTRE) for centre in odd)
        return self


class WriterDeclaration(Declaration):
    """What every writer has."""

    needs_every_message: ClassVar[bool] = True
    """Whether it cannot begin with a log from which compaction has taken messages."""

    name: Name
    namespaces: Expression = ".*"


class JournalDeclaration(WriterDeclaration):
    """Writes kafka-journal's tables in Cassandra."""

    needs_every_message: ClassVar[bool] = False
    not_here: ClassVar[Mapping[str, str]] = {
        "transforms": "A journal takes no transforms: its readers rely on what producers sent. Remove it."
    }

    kind: Literal[WriterKind.JOURNAL]
    keyspace: Keyspace = "journal"
    tables: Tables = Tables()
    segment_size: Annotated[Count, Field(ge=2, le=2**31 - 1)] = 10_000
    replication: Replication | None = None
    """Left out: three copies where there are nodes for them, else one."""
    consistency: Consistency = Consistency.LOCAL_QUORUM
    connection: ConnectionId = "cassandra_default"
    reconcile: Annotated[Count, Field(ge=0, le=100_000)] = 100
    start: Annotated[WriterStart, AfterValidator(_not_latest)] = WriterStart.EARLIEST


class FilesDeclaration(WriterDeclaration):
    """Writes one file per binding into a folder."""

    kind: Literal[WriterKind.FILES]
    path: Location
    format: FileFormat = FileFormat.PARQUET
    transforms: Transforms = ()
    reconcile: Annotated[Count, Field(ge=0, le=100_000)] = 2
    start: StartAnywhere = WriterStart.EARLIEST


class KafkaDeclaration(WriterDeclaration):
    """Republishes messages to a topic that exists already."""

    kind: Literal[WriterKind.KAFKA]
    topic: Topic
    create: TopicCreation = TopicCreation()
    connection: ConnectionId = "kafka_default"
    transforms: Transforms = ()
    reconcile: Annotated[Count, Field(ge=0, le=100_000)] = 1_000
    start: StartAnywhere = WriterStart.EARLIEST


WRITERS: Mapping[WriterKind, type[WriterDeclaration]] = {
    WriterKind.JOURNAL: JournalDeclaration,
    WriterKind.FILES: FilesDeclaration,
    WriterKind.KAFKA: KafkaDeclaration,
}
AnyWriter = Annotated[JournalDeclaration | FilesDeclaration | KafkaDeclaration, Field(discriminator="kind")]
