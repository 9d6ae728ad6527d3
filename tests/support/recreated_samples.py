"""A log over several topics, of which some are deleted and made again, and the journals it feeds."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.found_in_memory import FoundInMemory
from tests.support.journal_samples import DAY, ActionLog, JournalWorld, WriterInMemory, journal_writer
from tests.support.log_samples import given_binding
from tests.support.memory_journal import Fate, MemoryJournal, MemoryTables, Order

from tidemark.delivery.deliver import Delivered
from tidemark.log.model.binding import Binding
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind
from tidemark.pipeline.model import WriterStart
from tidemark.verification.basis import read_basis
from tidemark.verification.journal.entities import judge_entities
from tidemark.verification.journal.judge import EntityVerdict
from tidemark.verification.selection import Entity


@dataclass(eq=False)
class TopicsLog(ActionLog):
    """A published log of the topics ``a``, ``b``, …, each with an id that changes when it is made again."""

    next_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)

    def publish_topics(self, **topics: str | Sequence[str]) -> Binding:
        """What topics have next; the histories of several partitions in a list."""
        given = {
            (topic, partition): text
            for topic, texts in sorted(topics.items())
            for partition, text in enumerate([texts] if isinstance(texts, str) else texts)
            if text
        }
        slices = [
            (*place, lower, lower + len(text.split()))
            for place, text in given.items()
            for lower in [self.next_offsets.get(place, 0)]
        ]
        self.next_offsets |= {(topic, partition): upper for topic, partition, _, upper in slices}
        t = DAY * (len(self.bindings) + 1)
        ids = {topic: self.topic_id(topic) for topic, *_ in slices}
        binding = given_binding(t, self.manifest.end + 1, *slices, run_id=f"run-{t}", topic_ids=ids)
        files = [file for place, text in given.items() for file in self._files(binding, place, text)]
        self.bindings.append(binding)
        self.manifest = self.manifest.with_binding(t, binding.end, files, 1_000_000)
        self.plane.replace_log(self.plane.log_head().version, self.log_head())
        return binding

    def topic_id(self, topic: str) -> str:
        return f"{topic}-{self.generations.get(topic, 0)}"

    def recreate(self, topic: str, kind: LossKind = LossKind.RECREATED, *, is_planned: bool = True) -> None:
        """Delete a topic and make it again, which a person accepts."""
        self.generations[topic] = self.generations.get(topic, 0) + 1
        found = DAY * len(self.bindings) + 1 + len(self.losses)
        for place in [one for one in self.next_offsets if one[0] == topic]:
            read = self.next_offsets.pop(place)
            new_id = self.topic_id(topic) if kind is LossKind.RECREATED else None
            loss = Loss(kind, *place, read, read, new_id)
            end = self.bindings[-1].end
            self.losses.append(AcceptedLoss(loss, None, end, "ann", "known", found + 1, found, is_planned))

    def accept_again(self) -> None:
        """See the plan, and accept it."""
        self.losses = [replace(one, is_planned=True) for one in self.losses]


class TopicsWorld(JournalWorld):
    """``JournalWorld`` over several topics, with a second journal in a keyspace of its own."""

    actions: TopicsLog

    def __init__(self, log: TopicsLog, named: Sequence[str] = (), **settings: Any) -> None:
        self.named, self.second = frozenset(named), MemoryJournal()
        super().__init__(log, **settings)

    def started(self, fate: Fate = lambda done: None, order: Order = iter) -> WriterInMemory:
        super().started(fate, order)
        self.process = replace(self.process, topics=self.named)
        return self.process

    def recreated(self, fate: Fate = lambda done: None, order: Order = iter, **keys: Any) -> WriterInMemory:
        """A writer that begins with what was made again, in another keyspace."""
        tables = MemoryTables(self.second, fate, order)
        declared = {"name": "second", "keyspace": "second", "start": "recreated"}
        return journal_writer(tables, **{**declared, **keys})

    def deliver_recreated(self, **keys: Any) -> Delivered:
        return self.deliver(self.recreated(**keys), start=WriterStart.RECREATED)

    def seen(self, topic: str, *keys: str, journal: MemoryJournal | None = None) -> dict[str, Any]:
        """The events that a reader gets of entities of a topic."""
        reader = (journal or self.journal).of(topic)
        found = {key: reader.visible(key) for key in keys}
        return {
            key: None if one is None else sorted(number for _, number, _ in one["rows"])
            for key, one in found.items()
        }

    def judged(self, writer: WriterInMemory, topic: str, *keys: str) -> dict[str, EntityVerdict]:
        basis, _ = read_basis(writer, self.log, self.positions)
        tables = FoundInMemory(writer.tables.journal)
        found = judge_entities(basis, self.log, tables, [Entity(topic, key) for key in keys])
        return {one.key: one for one in found}
