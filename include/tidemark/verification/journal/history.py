"""The history of one entity: its messages and their effects, what readers see now, and hidden rows.

Reads the log and the tables for this entity alone. Read-only.
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
"""How many hidden rows are listed; all are counted."""


class MessageFate(StrEnum):
    """What the writer did with a message."""

    APPLIED = "applied"
    ACKNOWLEDGED = "acknowledged"
    BEYOND = "beyond the position"
    NOT_APPLICABLE = "not applicable"
    NO_ACTION = "no action"
    LEFT_OUT = "left out"


@dataclass(frozen=True)
class HistoryStep:
    """One message of the entity, what the writer did with it (``standing``), and its effect."""

    id: int
    """The message's id in the log."""
    partition: int
    offset: int
    timestamp: int
    """The producer's time, in ms."""
    t: int
    """The binding's time, in µs."""
    action: str
    origin: str | None
    standing: MessageFate
    effect: str


@dataclass(frozen=True, slots=True)
class HiddenRow:
    """A row that exists and that readers do not get, and why."""

    seq_nr: int
    segment: int
    timestamp: int
    offset: int
    why: str


@dataclass(frozen=True, slots=True)
class History:
    """The history of one entity.

    Attributes:
        position: The writer's position.
        steps: The newest messages; ``total`` counts all.
        readable: The number of rows that readers get.
        beyond_head: How many of those have a higher sequence number than the head. They come from an
            interrupted append, or from a sequence number that was used again.
        hidden: The first hidden rows.
        hidden_by: The number of all hidden rows, by reason.
        verdict: The verdict of a verification; None for an entity that is unknown.
    """

    pipeline: str
    writer: str
    topic: str
    key: str
    position: int
    steps: tuple[HistoryStep, ...]
    total: int
    head: Head | None
    readable: int
    beyond_head: int
    hidden: tuple[HiddenRow, ...]
    hidden_by: Mapping[Hidden, int]
    verdict: EntityVerdict | None

    @property
    def is_known(self) -> bool:
        """Whether the log or the tables hold anything of the entity."""
        return bool(self.total or self.head or self.hidden_by)

    def to_dict(self) -> dict[str, Any]:
        """The document that ``--json`` prints."""
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
        """The verdict, in words."""
        verdict = self.verdict
        if verdict is None:
            return "unknown"
        if verdict.unprovable is not None:
            return f"not provable: {verdict.detail or verdict.unprovable.value}"
        return "different" if verdict.total else "as the log says"


class _Steps:
    """Folds an entity's messages one at a time, and keeps the effect of each."""

    def __init__(self, basis: Basis, entity: Entity, most: int | None) -> None:
        self._basis, self._entity = basis, entity
        self._head: Head | None = None
        self.steps: deque[HistoryStep] = deque(maxlen=most)
        self.total = 0
        self.segments: set[int] = set()
        """All segments that rows were ever written to."""

    def add(self, record: LoggedRecord) -> None:
        """Add the next message, oldest first."""
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
        origin = None if action is None else action.origin
        place = (record.id, record.partition, record.offset, record.timestamp, record.t)
        self.steps.append(HistoryStep(*place, _action_text(action), origin, standing, effect))

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
        return MessageFate.APPLIED, _effect_text(action, before, effect)


def read_histories(
    basis: Basis, log: PublishedLog, tables: FoundTables, key: str, topics: list[str], most: int | None
) -> Iterator[History]:
    """The histories of the entities with this key, at most one per topic; unknown entities are left out.

    ``most`` limits how many messages of each are shown; None for all.
    """
    for topic in topics:
        history = read_history(basis, log, tables, Entity(topic, key), most)
        if history.is_known:
            yield history


def read_history(
    basis: Basis, log: PublishedLog, tables: FoundTables, entity: Entity, most: int | None = None
) -> History:
    """The history of one entity: the newest ``most`` messages (None: all), and its present head and rows."""
    steps, judge = _Steps(basis, entity, most), EntityJudge(basis, *entity)
    # Operators also want to see messages beyond the position, and those of the topic's other incarnations.
    files = files_of(log.manifest, replace(basis, horizon=log.end, taken={}), [entity.topic])
    for _, record in read_in_order(log.folder, files, Listed(frozenset({entity})), log.end):
        steps.add(record)
        if record.id <= basis.horizon:
            judge.hear_message(record)
    head = tables.read_heads(entity.topic, [entity.key]).get(entity.key)
    judge.hear_head(head)
    segments = segments_to_read({0, *judge.segments, *steps.segments}, head)
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
        tuple(steps.steps),
        steps.total,
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


def _action_text(action: Action | None) -> str:
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


def _effect_text(action: Action, before: Head | None, effect: Effect) -> str:
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
