"""A pipeline in memory whose entities expire: Kafka, the log, the heads, and what replicates between them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.compaction_samples import Sent
from tests.support.compaction_samples import sent as sent_message
from tests.support.compaction_world import HOUR, START
from tests.support.compaction_world import World as CompactionWorld

from tidemark.delivery.published_log import PublishedLog
from tidemark.expiry.heads import EntityHead
from tidemark.expiry.last_look import ActionRecord
from tidemark.expiry.run import ExpiryRun
from tidemark.expiry.run_record import Intended
from tidemark.journal.action import Action, Delete, Mark, Purge, append
from tidemark.journal.codec.expire_after import ExpireAfter
from tidemark.journal.effect import Message
from tidemark.journal.events import EncodedEvent, Events, PayloadMetadata
from tidemark.journal.fold import fold
from tidemark.journal.head import Head
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.binding import Offsets

TOPIC, WRITER, RUN = "orders", "w", "orders.purge_expired r1"
PARTITIONS = 2
FIRST_DAY = datetime.fromtimestamp(START / 1_000_000, UTC).date()
"""The day on which the first binding is made; what expires at once expires on it."""


def append_of(key: str, seq_nr: int, expires: bool = True) -> Action:
    metadata = PayloadMetadata(ExpireAfter(1, "minute") if expires else None, None)
    return append(key, 1, Events((EncodedEvent(seq_nr, (), "json", "1"),), metadata))


@dataclass
class World:
    """Everything but Airflow."""

    root: Path
    log: CompactionWorld = field(init=False)
    kafka: dict[int, list[Action]] = field(default_factory=lambda: {p: [] for p in range(PARTITIONS)})
    heads: dict[str, Head] = field(default_factory=dict)
    before_send: Callable[[], object] = lambda: None
    """Happens once, between the last look and the purges."""

    def __post_init__(self) -> None:
        self.log = CompactionWorld(self.root, "journal")

    # Producers

    def send(self, action: Action, partition: int = 0) -> int:
        self.kafka[partition].append(action)
        return len(self.kafka[partition]) - 1

    def say(self, text: str, partition: int = 0) -> None:
        """In one line: ``k+1`` appends and expires, ``k=2`` appends, ``k-1`` deletes, ``k!`` and ``k~``."""
        for word in text.split():
            key, sign, number = word[0], word[1], word[2:]
            made: dict[str, Callable[[], Action]] = {
                "+": lambda key=key, number=number: append_of(key, int(number)),
                "=": lambda key=key, number=number: append_of(key, int(number), expires=False),
                "-": lambda key=key, number=number: Delete(key, 1, int(number)),
                "!": lambda key=key: Purge(key, 1),
                "~": lambda key=key: Mark(key, 1, "m"),
            }
            self.send(made[sign](), partition)

    # Replication

    def bind(self) -> Any:
        """Publish what is new in Kafka."""
        reached = self.log.control.bindings_head().reached
        new: list[Sent] = []
        for partition, actions in self.kafka.items():
            new += [
                sent_message(action, partition) for action in actions[reached.get((TOPIC, partition), 0) :]
            ]
        return self.log.publish(*new) if new else None

    def deliver(self) -> None:
        """Bring the heads, and the writer, to the end of the log."""
        state = self.log.positions.load(WRITER)
        for binding in list(Bindings(self.log.control).after(state.position if state else -1)):
            for s in binding.slices:
                for offset in range(s.lower, s.upper):
                    id_ = binding.id_of(TOPIC, s.partition, offset)
                    action = self.kafka[s.partition][offset]
                    place = (s.partition, offset, binding.write_time(id_), binding.t)
                    if not isinstance(action, Mark):
                        self._apply(Message(id_, *place, action))
        self.log.move(self.log.control.log_head().end, WRITER)

    def _apply(self, message: Message) -> None:
        key = message.action.key
        head = fold(TOPIC, key, self.heads.get(key), [message]).head
        self.heads.pop(key, None)
        if head is not None:
            self.heads[key] = head

    def replicate(self) -> None:
        self.bind()
        self.deliver()

    def pass_days(self, days: int = 2) -> None:
        """Nothing new for a while: the source is bound up to then."""
        self.log.bound += days * 24
        head = self.log.control.bindings_head()
        self.log.control.advance_upper(head, START + self.log.bound * HOUR)
        self.log.now = START + self.log.bound * HOUR

    # Ports

    def expired_on(self, day: date) -> Iterator[EntityHead]:
        return iter(
            [EntityHead(TOPIC, key, head) for key, head in self.heads.items() if head.expire_on == day]
        )

    def of_entities(self, topic: str, keys: Sequence[str]) -> Mapping[str, Head]:
        return {key: self.heads[key] for key in keys if key in self.heads}

    def offsets(self, topic: str) -> Mapping[int, Offsets] | None:
        if not self.kafka:
            return None
        return {partition: Offsets(0, len(actions)) for partition, actions in self.kafka.items()}

    def records(self, topic: str, partition: int, first: int, end: int) -> Iterator[ActionRecord]:
        for offset in range(first, end):
            one = sent_message(self.kafka[partition][offset])
            yield ActionRecord(partition, offset, one.key, one.value, one.timestamp, 0, one.headers)

    def take(self, purges: Sequence[Intended]) -> list[int]:
        happen, self.before_send = self.before_send, lambda: None
        happen()
        return [self.send(Purge(one.key, 1, RUN), one.partition) for one in purges]

    def run(self, name: str = RUN) -> ExpiryRun:
        world = self

        class Sender:
            def send(self, purges: Sequence[Intended]) -> list[int]:
                return world.take(purges)

        log = PublishedLog.open(self.log.control, str(self.root))
        ports = (log, self, self, Sender(), lambda topic: topic == TOPIC)
        return ExpiryRun(name, WRITER, UTC, self.log.positions, *ports, clock=lambda: self.log.now)

    def purge(self, *days: date, name: str = RUN, ceiling: int = 1000) -> dict[str, Any]:
        """A whole run, with replication in between."""
        run = self.run(name)
        asked = run.days(days)
        run.open_days(asked)
        run.plan(asked, run.find(asked), ceiling)
        run.purge()
        self.replicate()
        assert not run.waiting()
        return self.run(name).report(asked)

    @property
    def purges(self) -> list[str]:
        """The entities that purges were sent for, by us."""
        return [
            action.key
            for actions in self.kafka.values()
            for action in actions
            if isinstance(action, Purge) and action.origin
        ]


def given_world(root: Path, text: str = "a+1 b+1 c=1") -> World:
    """A world whose first entities are replicated, long ago."""
    world = World(root)
    world.say(text)
    world.replicate()
    world.pass_days()
    return world


def day(number: int = 0) -> date:
    return FIRST_DAY + timedelta(days=number)


def planned(world: World, name: str = RUN) -> ExpiryRun:
    run = world.run(name)
    run.plan([day()], run.find([day()]), 10)
    return run
