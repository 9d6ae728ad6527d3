"""The declaration of writers in a pipeline file, and of kinds of writers.

A kind is a ``WriterKind``: the model of its keys and the function that makes the writer. Its model also
says what it needs (connections) and what it claims (folders, topics, other targets), so that a file is
checked without knowing any kind. What a writer does with messages is in ``tidemark.writers``, one
sub-package per kind.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, SerializeAsAny, ValidationInfo

from tidemark.errors import did_you_mean
from tidemark.pipeline.expect import Expectation
from tidemark.pipeline.extensions import ExtensionPoint, UnknownKind
from tidemark.pipeline.parts import Declaration, Duration, Expression, Name, read_as
from tidemark.pipeline.problems import Disagreement, Finding, quoted


class ConnectionType(StrEnum):
    """What a connection leads to."""

    CASSANDRA = "cassandra"
    KAFKA = "kafka"
    OTHER = "other"
    """A service that only the writer knows: it gets host, port, login, password and extra as Airflow keeps
    them."""


class NeededConnection(NamedTuple):
    """A connection that a writer needs, by the id it has in Airflow."""

    type: ConnectionType
    id: str


class FolderClaim(NamedTuple):
    """A folder that a writer must have for itself, with the key of the declaration that names it."""

    key: str
    path: str
    has_renditions: bool = False
    """Whether renditions of the writer get folders beside it."""


@dataclass(frozen=True, slots=True)
class TargetClaim:
    """Another external target that only one writer may write to, such as a table."""

    key: str
    shown: str
    """As a message shows it."""
    identity: tuple[str, ...]
    """Two claims are about the same target when these are equal."""
    per_topic: bool = False
    """Whether pipelines may share the target as long as they read different topics."""


@dataclass(frozen=True, slots=True)
class TopicClaim:
    """A Kafka topic that a writer sends to. Its pipeline may not read it, and no other writer may send to
    it."""

    key: str
    connection: str
    topic: str
    has_renditions: bool = False
    """Whether renditions of the writer get topics with names derived from it."""
    per_topic = False

    @property
    def shown(self) -> str:
        """See ``TargetClaim``."""
        return self.topic

    @property
    def identity(self) -> tuple[str, ...]:
        """See ``TargetClaim``."""
        return ConnectionType.KAFKA, self.connection, self.topic


WriterClaim = FolderClaim | TopicClaim | TargetClaim


class WriterStart(StrEnum):
    """Where a new writer begins in the commit log."""

    EARLIEST = "earliest"
    """With the first message that the log has."""
    LATEST = "latest"
    """After the last one that is there when the writer is registered."""
    RECREATED = "recreated"
    """At the first message of a recreated topic that was accepted; only for a journal."""


def never_at(start: WriterStart, why: str) -> AfterValidator:
    """Refuses one of the places to begin at, for kinds of writers that cannot."""

    def check(chosen: WriterStart) -> WriterStart:
        if chosen is start:
            raise ValueError(why)
        return chosen

    return AfterValidator(check)


NOT_RECREATED = never_at(
    WriterStart.RECREATED,
    "can be `recreated` for a journal only: every other writer takes a topic that was made again "
    "like any other. Use `earliest` or `latest`.",
)


class OnChange(StrEnum):
    """What happens where a setting in the file differs from the active rendition's.

    Attributes:
        REPORT: Runs and the status say so; an operator decides.
        REBUILD: The next rendition is built with the setting, unless an earlier one had it.
    """

    REPORT = "report"
    REBUILD = "rebuild"


_LOOKED_AFTER = frozenset({"on_change", "soak", "expect", "connection", "reconcile"})


class WriterDeclaration(Declaration):
    """The keys that every writer has. A kind adds its own keys, and overrides the attributes and methods
    below where its writers need something else."""

    formats: ClassVar[frozenset[str] | None] = None
    """The source formats it understands; None for all."""
    unshaping: ClassVar[frozenset[str]] = _LOOKED_AFTER
    """Keys that say how the output is built, kept, reached or looked after, not what it holds. They are no
    settings of a rendition: a change applies to all of them at once."""
    has_times: ClassVar[bool] = False
    """Whether readers read its output as of any time. Its name is not used again after it was forgotten."""

    name: Name
    kind: str
    namespaces: Expression = ".*"
    start: Annotated[WriterStart, NOT_RECREATED] = WriterStart.EARLIEST
    on_change: OnChange = OnChange.REPORT
    soak: Duration = timedelta(hours=24)
    """How long a rendition that was superseded is still delivered to, so that readers can return to it."""
    expect: tuple[Expectation, ...] = ()
    """The differences that a new rendition is meant to have."""

    @property
    def needed_formats(self) -> frozenset[str] | None:
        """The source formats that it understands as it is declared; None for all."""
        return self.formats

    @property
    def key_of_formats(self) -> str:
        """The key that decides which source formats it understands."""
        return "kind"

    @property
    def removes_versions(self) -> bool:
        """Whether old versions of its rows are removed."""
        return False

    @property
    def needs_every_message(self) -> bool:
        """Whether it cannot begin with a log from which compaction has removed messages."""
        return True

    def connections(self) -> Iterable[NeededConnection]:
        """The connections that ``WriterKind.build`` will ask for."""
        return ()

    def claims(self) -> Iterable[WriterClaim]:
        """The external resources that belong to this writer alone: two writers with the same claim are
        refused."""
        return ()

    # Optional: renditions, each at a place of its own

    @property
    def place(self) -> str:
        """Where its output is: a keyspace, path, topic or table. Empty for a kind that has no renditions
        after the first."""
        return ""

    def sibling(self, place: str, number: int) -> str:
        """The place of rendition ``number``, beside the declared ``place`` and never inside of it.

        Called with the declared place of the writer, not with that of another rendition.
        """
        raise TypeError(f"writers of kind {self.kind} have one rendition only")

    def at_place(self, place: str) -> Self:
        """The declaration of a rendition that is kept at another place."""
        if place != self.place:
            raise TypeError(f"writers of kind {self.kind} have one rendition only")
        return self


@dataclass(frozen=True, slots=True)
class WriterKind:
    """A kind of writer, as an entry point of group ``tidemark.writers`` declares it."""

    name: str
    """The word in the file, ``kind: files``. Stored with the state of its writers, so it can never change."""
    declaration: type[WriterDeclaration]
    """Its keys in a file. Imported wherever pipeline files are read, so its module imports nothing heavy."""
    build: Callable[..., Any]
    """Makes the writer, a ``tidemark.delivery.writer.Writer``, from the pipeline, the declaration and the
    connections, in this order. It imports the writer's own module, because only deliveries need that."""
    removal: Callable[..., Any] | None = None
    """Makes the ``tidemark.writers.removal.PlaceRemoval`` of a rendition's place, from the same three and the
    topics that the pipeline has bound. None: the places of its renditions stay when they are retired."""


WRITERS = ExtensionPoint("tidemark.writers", WriterKind)


def _declared(item: Any, info: ValidationInfo) -> Any:
    """A writer's mapping, read by the model of its kind."""
    if not isinstance(item, Mapping):
        return item  # a declaration that is made already, or what the model refuses by itself
    if "kind" not in item:
        raise Disagreement([Finding(("kind",), f"is missing. Add it: {' or '.join(WRITERS.names())}.")])
    name = item["kind"]
    try:
        kind = WRITERS.find(str(name))
    except UnknownKind:
        text = f"is {quoted(name)}, which no writer is. Kinds: {WRITERS.listed()}."
        hint = did_you_mean(name, WRITERS.names(), "") if isinstance(name, str) else ""
        raise Disagreement([Finding(("kind",), f"{text} {hint}".rstrip())]) from None
    except ValueError as unusable:
        raise Disagreement([Finding(("kind",), str(unusable))]) from unusable
    return read_as(kind.declaration, item, info, kind.name)


AnyWriter = Annotated[SerializeAsAny[WriterDeclaration], BeforeValidator(_declared)]
"""A writer of any kind."""
