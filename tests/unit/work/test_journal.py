"""A work journal in memory: the contract that Cassandra keeps too."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from tests.support.contracts.work_contract import JournalContract
from tests.support.contracts.work_stores import StoreContract
from tests.support.contracts.work_upkeep import UpkeepContract
from tests.support.contracts.work_world import Stores, memory_stores

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import ABSENT, Change, ObjectKey, ObjectKind, Snapshot

pytestmark = pytest.mark.unit


@pytest.fixture
def stores() -> Stores:
    return memory_stores()


class LateConsensus(MemoryConsensus):
    """Shows what was there before the last change to readers that are content with that."""

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[ObjectKey, Snapshot] = {}

    def recent(self, kind: ObjectKind, names: Sequence[str]) -> Mapping[str, Snapshot]:
        found = {name: self._before.get(ObjectKey(kind, name), Snapshot(ABSENT, {})) for name in names}
        return {name: snapshot for name, snapshot in found.items() if snapshot.version != ABSENT}

    def commit(self, key: ObjectKey, expected: int, change: Change) -> int:
        before = self.whole(key)
        version = super().commit(key, expected, change)
        self._before[key] = before
        return version


class TestMemoryStores(StoreContract):
    """With this module's ``stores``."""


class TestMemoryJournal(JournalContract):
    """With this module's ``stores``."""


class TestMemoryUpkeep(UpkeepContract):
    """With this module's ``stores``."""


class TestJournalWithLateReads(JournalContract):
    """What may be a moment old decides nothing."""

    @pytest.fixture
    def stores(self) -> Stores:
        return replace(memory_stores(), entries=LateConsensus())
