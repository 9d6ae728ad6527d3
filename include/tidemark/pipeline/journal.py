"""What the writer of kind ``journal`` declares: kafka-journal's tables in Cassandra, their names and copies.

In this package, unlike the declarations of other kinds, because clients, expiry and verification read the
same tables without being writers.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from tidemark.pipeline import checks
from tidemark.pipeline.kinds import KAFKA_JOURNAL
from tidemark.pipeline.parts import ConnectionId, Count, Declaration
from tidemark.pipeline.problems import Disagreement, Finding
from tidemark.pipeline.writers import (
    ConnectionType,
    NeededConnection,
    TargetClaim,
    WriterClaim,
    WriterDeclaration,
    WriterStart,
    never_at,
)

Keyspace = Annotated[str, AfterValidator(checks.keyspace), AfterValidator(checks.not_derived)]
Table = Annotated[str, AfterValidator(checks.identifier), AfterValidator(checks.not_derived)]

_NOT_SIMPLE = (
    "is not a key of SimpleStrategy. Use `replication_factor`; factors per data centre need "
    "`class: NetworkTopologyStrategy`."
)
_ODD_CENTRE = "is not the name of a data centre. Use letters, digits, ., - and _ only."


class Consistency(StrEnum):
    """The levels at which a journal can be written and read back."""

    ONE = "ONE"
    TWO = "TWO"
    THREE = "THREE"
    QUORUM = "QUORUM"
    ALL = "ALL"
    LOCAL_QUORUM = "LOCAL_QUORUM"
    EACH_QUORUM = "EACH_QUORUM"
    LOCAL_ONE = "LOCAL_ONE"


class TableNames(Declaration):
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
            raise Disagreement(findings)
        return self


class ReplicationStrategy(StrEnum):
    """How Cassandra places the copies of a keyspace."""

    SIMPLE = "SimpleStrategy"
    """On the next nodes of the ring, wherever they are."""
    NETWORK_TOPOLOGY = "NetworkTopologyStrategy"


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
                raise Disagreement(centres)
            if not factors:
                raise ValueError("has no factor. Add `replication_factor`.")
        if not factors:
            raise ValueError("has no factor. Add the data centres, such as `dc1: 3`.")
        odd = [centre for centre in factors if not re.fullmatch(r"[A-Za-z0-9._-]+", centre)]
        if odd:
            raise Disagreement(Finding((centre,), _ODD_CENTRE) for centre in odd)
        return self


_NOT_LATEST = never_at(
    WriterStart.LATEST,
    "cannot be `latest` for a journal: its pointers would promise messages that were never written. "
    "Use `earliest`.",
)


class JournalDeclaration(WriterDeclaration):
    """Writes kafka-journal's tables in Cassandra."""

    formats: ClassVar[frozenset[str] | None] = frozenset({KAFKA_JOURNAL})
    unshaping: ClassVar[frozenset[str]] = WriterDeclaration.unshaping | {"replication", "consistency"}
    not_here: ClassVar[Mapping[str, str]] = {
        "transforms": "A journal takes no transforms: its readers rely on what producers sent. Remove it."
    }

    kind: Literal["journal"]
    keyspace: Keyspace = "journal"
    tables: TableNames = TableNames()
    segment_size: Annotated[Count, Field(ge=2, le=2**31 - 1)] = 10_000
    replication: Replication | None = None
    """Left out: three copies where there are nodes for them, else one."""
    consistency: Consistency = Consistency.LOCAL_QUORUM
    connection: ConnectionId = "cassandra_default"
    reconcile: Annotated[Count, Field(ge=0, le=100_000)] = 100
    start: Annotated[WriterStart, _NOT_LATEST] = WriterStart.EARLIEST

    @property
    def needs_every_message(self) -> bool:
        """See ``WriterDeclaration``: whether it may begin depends on what its keyspace holds."""
        return False

    def connections(self) -> Iterable[NeededConnection]:
        """See ``WriterDeclaration``."""
        yield NeededConnection(ConnectionType.CASSANDRA, self.connection)

    def claims(self) -> Iterable[WriterClaim]:
        """See ``WriterDeclaration``: a keyspace holds every topic once."""
        identity = (ConnectionType.CASSANDRA, self.connection, self.keyspace)
        yield TargetClaim("keyspace", self.keyspace, identity, per_topic=True)

    @property
    def place(self) -> str:
        """See ``WriterDeclaration``: the keyspace."""
        return self.keyspace

    def sibling(self, place: str, number: int) -> str:
        """See ``WriterDeclaration``."""
        return checks.identifier(f"{place}_r{number}")

    def at_place(self, place: str) -> Self:
        """See ``WriterDeclaration``."""
        return self.model_copy(update={"keyspace": place})
