"""A work journal with a clock that the test moves, in memory or on whatever stores it is given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from threading import Barrier, Thread
from typing import Any
from uuid import uuid4

import pytest
from tests.support.clocks import WorkClock

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Consensus
from tidemark.work.model.declaration import WorkDeclaration
from tidemark.work.model.entry import Entry
from tidemark.work.queue.due_queue import Lanes
from tidemark.work.queue.entry_updates import Parts
from tidemark.work.queue.journal import Claimed, WorkJournal
from tidemark.work.queue.packets import packet_of
from tidemark.work.queue.sweep import Sweep, SweptJournal
from tidemark.work.store.due import Archive, Due, MemoryDue
from tidemark.work.store.entries import Entries, key_hash
from tidemark.work.store.memory import MemoryArchive
from tidemark.work.store.registry import Registry


@dataclass(frozen=True)
class Stores:
    """Where a journal is kept."""

    entries: Consensus
    registry: Consensus
    due: Callable[[str], Due]
    archive: Callable[[str], Archive]


def memory_stores() -> Stores:
    dues: dict[str, MemoryDue] = {}
    archives: dict[str, MemoryArchive] = {}
    return Stores(
        MemoryConsensus(),
        MemoryConsensus(),
        lambda name: dues.setdefault(name, MemoryDue()),
        lambda name: archives.setdefault(name, MemoryArchive()),
    )


def given_declaration(**keys: Any) -> WorkDeclaration:
    """A journal that no other test uses."""
    usual = {"name": f"j{uuid4().hex[:12]}", "key": {"k": "text"}, "payload": {"data": "json"}}
    return WorkDeclaration.model_validate({**usual, **keys})


@dataclass
class WorkWorld:
    """One journal and who works with it."""

    stores: Stores = field(default_factory=memory_stores)
    declared: WorkDeclaration = field(default_factory=given_declaration)
    clock: WorkClock = field(default_factory=WorkClock)
    hashed: Callable[[str], str] = key_hash

    def __post_init__(self) -> None:
        # The same for the same history, in no order: a failure can be had again.
        self._ids = count()
        self.parts.registry.create(self.declared)
        self.restart()

    @property
    def parts(self) -> Parts:
        name = self.declared.name
        return Parts(
            declared=self.declared,
            registry=Registry(self.stores.registry, name),
            entries=Entries(self.stores.entries, name, self.hashed),
            due=self.stores.due(name),
            archive=self.stores.archive(name),
            clock=self.clock,
            new_id=lambda: key_hash(str(next(self._ids))),
            wait=lambda tries: None,
        )

    def restart(self) -> None:
        """A process that has seen nothing yet."""
        self.journal = self.another()

    def another(self) -> WorkJournal:
        lanes = Lanes(self.declared, self.stores.due(self.declared.name), 0, 0, page=3)
        return WorkJournal(self.parts, lanes, registry_for=0)

    def insert(self, key: str, data: Any = None, **options: Any) -> str:
        packet = packet_of(self.declared, key, {"data": data}, now=self.clock(), **options)
        return self.journal.insert(packet).outcome.value

    def claim(self, owner: str = "w1", limit: int = 1) -> list[Claimed]:
        return self.journal.claim(owner, limit)

    def claim_keys(self, owner: str = "w1", limit: int = 1) -> list[str]:
        return [claimed.key for claimed in self.claim(owner, limit)]

    def stored(self, key: str) -> Entry | None:
        return self.parts.entries.read(key).entry

    def sweep(self, *keys: str, gone: Sequence[str] = (), execute: bool = True) -> SweptJournal:
        return Sweep(self.parts, execute=execute).run(keys, [self.hashed(key) for key in gone])


def at_once(*acts: Any) -> None:
    """All of them from the same moment on; what one raises is raised here."""
    start, raised = Barrier(len(acts)), []

    def run(act: Any) -> None:
        start.wait(timeout=30)
        try:
            act()
        except Exception as error:
            raised.append(error)

    threads = [Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    if raised:
        raise raised[0]


def given_dead_letter(monkeypatch: pytest.MonkeyPatch) -> WorkWorld:
    """A journal in memory with one dead letter, found by its address; other journals do not answer."""
    from tidemark.work.client import Work
    from tidemark.work.store import known_journals

    world = WorkWorld(memory_stores(), given_declaration(max_failures=1))
    work = Work.of_journal(world.another())
    work.insert("k", {"data": 1})
    work.fail(*work.claim(), "no route")

    def opened(address: Any, look_up: Any) -> Any:
        if address.journal == world.declared.name:
            return world.parts
        raise OSError("no host answers")

    monkeypatch.setattr(known_journals, "open_address", opened)
    return world
