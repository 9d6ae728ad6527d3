"""How a stream begins: what its id says, where it goes on, and what its client is told of that.

Nothing is sent here. What is read is a few offsets and times.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from tidemark.errors import TidemarkError
from tidemark.operations.errors import BadOperation
from tidemark.operations.times import milliseconds
from tidemark.oplog.agent.streams.errors import NoCollection, OperationsLost, StreamError
from tidemark.oplog.agent.streams.requests import StreamRequest
from tidemark.oplog.agent.streams.settings import UnknownId
from tidemark.oplog.agent.streams.shared_sources import Sources
from tidemark.oplog.agent.streams.sources.logged_topic import LoggedTopic
from tidemark.oplog.agent.streams.sources.object_store import ObjectStore, TimeForgotten
from tidemark.oplog.agent.streams.sources.reading import RowBounds
from tidemark.oplog.model.event_ids import (
    BEGINNING,
    BadEventId,
    EventId,
    OperationId,
    OriginalId,
    ReplicationId,
    TimeId,
    WantedRows,
    read_event_id,
    stream_digest,
)
from tidemark.oplog.model.resume_plan import ResumePlan, Source
from tidemark.oplog.model.vector import Vector

Offset = TypeVar("Offset")

EVERYTHING = TimeId(0)
CLOCKS_APART = 10_000
"""The greatest difference between two clocks, in ms: rows since a time begin so much earlier."""


class StreamMode(StrEnum):
    """How a stream goes on; the header ``X-Oplog-Mode`` and the event ``open`` say it.

    Attributes:
        LIVE: With the next operation: the client has sent no id, or one that is ignored.
        EXACT: With every operation after the id.
        REPLICATION: With the rows that the id asks for, and then with every operation.
        FALLBACK: Some operations are gone: with the newest state of what has changed since, then exactly.
        RESET: What the client has missed is not known any more: with all objects.
    """

    LIVE = "live"
    EXACT = "exact"
    REPLICATION = "replication"
    FALLBACK = "fallback"
    RESET = "reset"


@dataclass(frozen=True)
class Replication:
    """Rows to send before operations.

    Attributes:
        begin: Where the rows begin.
        bounds: Which rows are wanted.
        held: What keeps them readable.
    """

    begin: ReplicationId
    bounds: RowBounds
    held: ExitStack = field(repr=False)

    @property
    def resets(self) -> bool:
        """Whether the client is told to forget its objects: nothing that follows that was sent yet."""
        return self.begin.rows.is_full and self.begin.token == BEGINNING


@dataclass(frozen=True)
class StreamStart:
    """How one stream begins.

    Attributes:
        mode: What the client is told.
        digest: What the stream's ids belong to.
        open_id: The id of the event ``open``: with it a client begins in the same way again.
        echo: The header ``Last-Event-ID`` of the response; None: the client's id was not honoured.
        vector: Where the stream goes on without rows.
        rows: The rows to send first.
    """

    mode: StreamMode
    digest: str
    open_id: str
    echo: str | None
    vector: Vector
    rows: Replication | None = None


def requested_id(request: StreamRequest) -> EventId | None:
    """The id that a request begins at; None: with the next operation. Raises ``BadEventId``."""
    if request.last_event_id is not None:
        return read_event_id(request.last_event_id)
    if request.since is None:
        return None
    if request.since.isascii() and request.since.isdigit() and len(request.since) <= 13:
        return TimeId(int(request.since))
    try:
        return TimeId(max(milliseconds(request.since), 0))
    except BadOperation:
        raise BadEventId(
            "The parameter since is neither a time in milliseconds nor one by RFC 3339. Nothing was sent. "
            "Send for example since=2026-01-31T12:00:00Z."
        ) from None


async def begin_stream(request: StreamRequest, sources: Sources) -> StreamStart:
    """Decide how a stream begins.

    Raises:
        BadEventId: The id is malformed.
        StreamError: What is needed cannot be read at the moment.
    """
    found = requested_id(request)
    opening = _Opening(sources, request)
    if found is None:
        return opening.live()
    try:
        return await opening.at(found)
    except (StreamError, BadEventId):
        raise
    except TidemarkError as error:
        raise NoCollection(str(error)) from error


class _Opening:
    def __init__(self, sources: Sources, request: StreamRequest) -> None:
        self._sources, self._echo = sources, request.last_event_id
        topic = sources.hub.topic
        self._digest = stream_digest(topic.cluster_id, topic.topic_id, request.stream_filter)
        self._partitions = topic.partitions

    def live(self) -> StreamStart:
        """Begin with the next operation."""
        vector = self._sources.hub.ring.vector
        id_ = str(OperationId(self._digest, vector))
        return StreamStart(StreamMode.LIVE, self._digest, id_, None, vector)

    async def at(self, found: EventId) -> StreamStart:
        """Begin at an id."""
        match found:
            case TimeId():
                return await self._rows(StreamMode.REPLICATION, found, self._echo)
            case OriginalId():
                return await self._inexact(StreamMode.FALLBACK, found.fallback)
            case OperationId() if self._is_ours(found.digest, found.vector):
                return await self._after(replace(found, vector=self._widened(found.vector, 0)))
            case ReplicationId() if self._is_ours(found.digest, found.end):
                beyond = found.rows.beyond
                rows = replace(found.rows, beyond=beyond and self._widened(beyond, None))
                end = self._widened(found.end, 0)
                return await self._within(replace(found, rows=rows, end=end))
        return await self._inexact(StreamMode.RESET, EVERYTHING)

    def _is_ours(self, digest: str, vector: Vector) -> bool:
        return digest == self._digest and len(vector) <= self._partitions

    def _widened(self, found: tuple[Offset, ...], nothing: Offset) -> tuple[Offset, ...]:
        """For partitions that the topic did not have then: the client has nothing of them."""
        return (*found, *(nothing for _ in range(self._partitions - len(found))))

    async def _after(self, found: OperationId) -> StreamStart:
        """After an operation."""
        plan = await self._sources.plan(found.vector)
        if plan.is_foreign:
            return await self._inexact(StreamMode.RESET, EVERYTHING)
        if plan.is_exact:
            return StreamStart(StreamMode.EXACT, self._digest, str(found), self._echo, found.vector)
        if self._sources.settings.unknown_id is UnknownId.IGNORE:
            return self.live()
        try:
            rows = await changed_rows(self._sources, self._digest, plan)
        except TimeForgotten:
            return await self._inexact(StreamMode.RESET, EVERYTHING)
        return StreamStart(StreamMode.FALLBACK, self._digest, str(rows.begin), None, rows.begin.end, rows)

    async def _within(self, found: ReplicationId) -> StreamStart:
        """Within a replication that was interrupted."""
        try:
            rows = await _resumed(self._sources, found)
        except (TimeForgotten, OperationsLost):
            # Its time is forgotten, or what follows its rows: a new replication ends at a newer place.
            return await self._inexact(StreamMode.RESET, EVERYTHING)
        return StreamStart(StreamMode.REPLICATION, self._digest, str(found), self._echo, found.end, rows)

    async def _inexact(self, mode: StreamMode, time: TimeId) -> StreamStart:
        """At a time instead of the id that was sent, which is not echoed: so the client knows."""
        if self._sources.settings.unknown_id is UnknownId.IGNORE:
            return self.live()
        return await self._rows(mode, time, None)

    async def _rows(self, mode: StreamMode, time: TimeId, echo: str | None) -> StreamStart:
        wanted = WantedRows(since=time.ms) if time.ms else WantedRows()
        try:
            rows = await new_rows(self._sources, self._digest, wanted)
        except TimeForgotten:
            # Deletes since then may be forgotten: only all objects tell which are left.
            mode, echo = StreamMode.RESET, None
            rows = await new_rows(self._sources, self._digest, WantedRows())
        # Before `reset` nothing was sent: a client that comes back at once has to be told again.
        id_ = str(EVERYTHING) if rows.resets else str(rows.begin)
        return StreamStart(mode, self._digest, id_, echo, rows.begin.end, rows)


async def new_rows(sources: Sources, digest: str, wanted: WantedRows) -> Replication:
    """The rows of the newest time. Raises ``TimeForgotten``."""
    first = tuple(one.first for one in await sources.offsets())
    return await _prepared(sources, digest, wanted, lambda ends: _filled(ends, first))


async def changed_rows(sources: Sources, digest: str, plan: ResumePlan) -> Replication:
    """The rows of what a client has missed where operations are gone. Raises ``TimeForgotten``."""
    first = tuple(one.first for one in await sources.offsets())
    wanted = WantedRows(beyond=plan.beyond)
    return await _prepared(sources, digest, wanted, lambda ends: plan.after_rows(_filled(ends, first)))


async def _resumed(sources: Sources, begin: ReplicationId) -> Replication:
    store, log = sources.require_store()

    def resume() -> Replication:
        bounds = _bounds(log, begin.rows)
        held = _held(store, begin.t, bounds)
        if begin.t > store.newest():
            held.close()
            raise TimeForgotten(f"the time {begin.t} was never readable")
        return Replication(begin, bounds, held)

    return await _continued(sources, await sources.store_threads.ask(resume, _give_up))


async def _prepared(
    sources: Sources, digest: str, wanted: WantedRows, end: Callable[[Sequence[int | None]], Vector]
) -> Replication:
    store, log = sources.require_store()

    def prepare() -> Replication:
        bounds = _bounds(log, wanted)
        t = store.newest()
        held = _held(store, t, bounds)
        begin = ReplicationId(digest, t, BEGINNING, wanted, end(log.ends_at(t)))
        return Replication(begin, bounds, held)

    return await _continued(sources, await sources.store_threads.ask(prepare, _give_up))


def _bounds(log: LoggedTopic, wanted: WantedRows) -> RowBounds:
    if wanted.since is not None:
        after = max((wanted.since - CLOCKS_APART) * 1000 - 1, 0)
        return RowBounds(after, after)
    if wanted.beyond is not None:
        times = log.missed(wanted.beyond)
        return RowBounds(times.before, times.until, wanted.beyond)
    return RowBounds()


def _held(store: ObjectStore, t: int, bounds: RowBounds) -> ExitStack:
    """Keeps the rows of a time readable, and those before what the client has missed."""
    held = ExitStack()
    held.enter_context(store.holding(t if bounds.after is None else min(t, bounds.after)))
    return held


def _filled(ends: Sequence[int | None], first: Vector) -> Vector:
    """A partition that was never bound is read from its beginning."""
    return tuple(one if end is None else end for end, one in zip(ends, first, strict=True))


async def _continued(sources: Sources, rows: Replication) -> Replication:
    """A replication whose end can be continued; raises ``OperationsLost``."""
    try:
        plan = await sources.plan(rows.begin.end)
        if plan.is_exact:
            return rows
        (number, *_) = (*plan.of(Source.COLLECTION), *plan.of(Source.AHEAD))
        offsets = (await sources.offsets())[number]
        at = rows.begin.end[number]
        raise OperationsLost(sources.settings.topic, number, at, offsets.first, offsets.end)
    except BaseException:
        await sources.store_threads.run(rows.held.close)
        raise


def _give_up(rows: Replication) -> None:
    rows.held.close()
