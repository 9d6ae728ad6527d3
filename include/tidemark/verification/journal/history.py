"""The life of one entity: what the log says was done to it, what a reader sees now, and what is hidden why.

Reads the log and the tables for this entity alone, and tells; nothing here judges but the judge itself.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from tidemark.delivery.published_log import PublishedLog
from tidemark.journal.action import Action, Append, Delete, Mark, Purge
from tidemark.journal.codec.record import read_action
from tidemark.journal.comparison import explain
from tidemark.journal.digest import source_of
from tidemark.journal.effect import Effect, Message
from tidemark.journal.errors import JournalError
from tidemark.journal.fold import fold
from tidemark.journal.head import Head
from tidemark.journal.visible import FoundRow, Hidden, why_hidden
from tidemark.journal_tables.reader import FoundTables, segments_to_read
from tidemark.verification.basis import Basis
from tidemark.verification.journal.judge import EntityJudge, EntityVerdict, LoggedRecord
from tidemark.verification.journal.messages import files_of, read_in_order
from tidemark.verification.selection import Entity, Listed

MOST_ROWS = 100
"""Hidden rows that are shown one by one."""


class MessageFate(StrEnum):
    """What became of a message."""

    APPLIED = "applied"
    ACKNOWLEDGED = "acknowledged"
    BEYOND = "beyond the position"
    NOT_APPLICABLE = "not applicable"
    NO_ACTION = "no action"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """One message of the entity, and what it did."""

    id: int
    partition: int
    offset: int
    timestamp: int
    """The producer's, in ms."""
    t: int
    """The binding's, in µs."""
    action: str
    origin: str | None
    standing: MessageFate
    effect: str


@dataclass(frozen=True, slots=True)
class HiddenRow:
    """A row that is there and that no reader gets."""

    seq_nr: int
    segment: int
    timestamp: int
    offset: int
    why: str


@dataclass(frozen=True, slots=True)
class History:
    """One entity."""

    pipeline: str
    writer: str
    topic: str
    key: str
    position: int
    steps: tuple[HistoryStep, ...]
    """The newest ones."""
    total: int
    """How many messages there are, shown or not."""
    head: Head | None
    readable: int
    """How many rows a reader gets."""
    beyond_head: int
    """How many of those have higher numbers than the head: an interrupted append, or a number used again."""
    hidden: tuple[HiddenRow, ...]
    """The first ones."""
    hidden_by: Mapping[Hidden, int]
    verdict: EntityVerdict | None

    @property
    def is_known(self) -> bool:
        """Whether anybody has heard of it."""
        return bool(self.total or self.head or self.hidden_by)

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        named = self.head._asdict() if self.head else {}
        return {
            "pipeline": self.pipeline,
            "writer": self.writer,
            "topic": self.topic,
            "key": self.key,
            "position": self.position,
            "messages": self.total,
            "steps": [{**asdict(step), "standing": step.standing.value} for step in self.steps],
            "head": {name: _plain(value) for name, value in named.items()} or None,
            "readable_rows": self.readable,
            "rows_beyond_head": self.beyond_head,
            "hidden_rows": {why.value: count for why, count in self.hidden_by.items()},
            "hidden": [asdict(row) for row in self.hidden],
            "verdict": self.judged,
            "differences": [one.to_dict() for one in self.verdict.differences] if self.verdict else [],
        }

    @property
    def judged(self) -> str:
        """What a verification says of it."""
        verdict = self.verdict
        if verdict is None:
            return "unknown"
        if verdict.unprovable is not None:
            return f"not provable: {verdict.detail or verdict.unprovable.value}"
        return "different" if verdict.total else "as the log says"


class _Told:
    """What was done, message by message; the fold is asked one message at a time."""

    def __init__(self, basis: Basis, entity: Entity, most: int | None) -> None:
        self._basis, self._entity = basis, entity
        self._head: Head | None = None
        self.steps: deque[HistoryStep] = deque(maxlen=most)
        self.total = 0
        self.segments: set[int] = set()
        """Where there ever were rows."""

    def hear(self, record: LoggedRecord) -> None:
        """The next message, oldest first."""
        self.total += 1
        action: Action | None = None
        times = (record.timestamp, record.timestamp_type)
        try:
            action = read_action(self._entity.key.encode(), record.value, *times, record.headers)
            standing, effect = self._apply(record, action)
        except JournalError as error:
            standing, effect = MessageFate.NOT_APPLICABLE, str(error)
            if record.id in self._basis.acknowledged:
                standing = MessageFate.ACKNOWLEDGED
            elif record.id > self._basis.position:
                standing = MessageFate.BEYOND
        said, origin = _said(action), None if action is None else action.origin
        place = (record.id, record.partition, record.offset, record.timestamp, record.t)
        self.steps.append(HistoryStep(*place, said, origin, standing, effect))

    def _apply(self, record: LoggedRecord, action: Action | None) -> tuple[MessageFate, str]:
        if action is None or isinstance(action, Mark):
            return MessageFate.NO_ACTION, ""
        if not self._basis.takes(self._entity.topic, record.id):
            return MessageFate.LEFT_OUT, "of another topic of this name: the topic was made again"
        if record.id in self._basis.acknowledged:
            return MessageFate.ACKNOWLEDGED, "a person let it pass; never written"
        if record.id > self._basis.position:
            return MessageFate.BEYOND, "the writer has not come to it"
        message = Message(record.id, record.partition, record.offset, record.write_time, record.t, action)
        effect = fold(
            *self._entity, self._head, [message], segment_size=self._basis.segment_size, zone=self._basis.zone
        )
        self.segments.update(row.segment for row in effect.rows)
        before, self._head = self._head, effect.head
        return MessageFate.APPLIED, _effect(action, before, effect)


def read_histories(
    basis: Basis, log: PublishedLog, tables: FoundTables, key: str, topics: list[str], most: int | None
) -> Iterator[History]:
    """The lives of the entities with this key, at most one a topic."""
    for topic in topics:
        history = read_history(basis, log, tables, Entity(topic, key), most)
        if history.is_known:
            yield history


def read_history(
    basis: Basis, log: PublishedLog, tables: FoundTables, entity: Entity, most: int | None = None
) -> History:
    """The life of one entity: the newest of its messages, and what there is of it now."""
    told, judge = _Told(basis, entity, most), EntityJudge(basis, *entity)
    # Also what was published after the writer's position, and what it leaves out: a person wants to see it.
    files = files_of(log.manifest, replace(basis, horizon=log.end, taken={}), [entity.topic])
    for _, record in read_in_order(log.folder, files, Listed(frozenset({entity})), log.end):
        told.hear(record)
        if record.id <= basis.horizon:
            judge.hear_message(record)
    head = tables.read_heads(entity.topic, [entity.key]).get(entity.key)
    judge.hear_head(head)
    segments = segments_to_read({0, *judge.segments, *told.segments}, head)
    hidden, reasons, readable, beyond = list[HiddenRow](), Counter[Hidden](), 0, 0
    for _, row in tables.read_rows(entity.topic, ((entity.key, segment) for segment in segments)):
        judge.hear_row(row)
        if (reason := why_hidden(head, row)) is None:
            readable += 1
            beyond += head is not None and row.seq_nr > head.seq_nr
        else:
            reasons[reason] += 1
            if len(hidden) < MOST_ROWS:
                hidden.append(_hidden(row, reason, head))
    return History(
        basis.pipeline,
        basis.writer,
        *entity,
        basis.position,
        tuple(told.steps),
        told.total,
        head,
        readable,
        beyond,
        tuple(hidden),
        dict(reasons),
        judge.conclude(),
    )


def _hidden(row: FoundRow, reason: Hidden, head: Head | None) -> HiddenRow:
    offset = source_of(row.digest)[1]
    return HiddenRow(row.seq_nr, row.segment, row.timestamp, offset, explain(reason, head))


def _said(action: Action | None) -> str:
    match action:
        case None:
            return ""
        case Append(first=first, last=last):
            return f"append {first}" if first == last else f"append {first} to {last}"
        case Delete(to=to):
            return f"delete to {to}"
        case Purge():
            return "purge"
        case Mark():
            return "mark"


def _effect(action: Action, before: Head | None, effect: Effect) -> str:
    head = effect.head
    if isinstance(action, Purge) or head is None:
        return "nothing was left of it" if before is not None else "there was nothing"
    if effect.skipped:
        return "had been applied already"
    parts = []
    if isinstance(action, Append):
        parts.append(f"{effect.events} event{'' if effect.events == 1 else 's'}")
        if before is None:
            parts.append("begins the entity")
        if effect.hidden:
            parts.append(f"{effect.hidden} of them hidden: deleted up to {head.delete_to}")
        if effect.duplicates:
            parts.append("sequence number used again")
        if head.expire_on is not None:
            parts.append(f"expires on {head.expire_on}")
    else:
        parts.append(f"deleted up to {head.delete_to}, at event {head.seq_nr}")
        if before is None:
            parts.append("begins the entity")
    return "; ".join(parts)


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, int | str) else str(value)
