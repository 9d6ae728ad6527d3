"""A journal in memory as a verification reads it, and a house whose journal can be verified and damaged."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tests.support.journal_samples import KEY, TOPIC, ActionLog, JournalWorld
from tests.support.memory_journal import MemoryJournal, MemoryTables

from tidemark.journal.digest import COLUMNS, row_digest
from tidemark.journal.head import Head
from tidemark.journal.visible import FoundRow
from tidemark.log.model.binding import TopicPartition
from tidemark.verification.basis import Basis, read_basis
from tidemark.verification.journal.entities import Case, judge_entities
from tidemark.verification.journal.judge import EntityVerdict
from tidemark.verification.result import Verification
from tidemark.verification.selection import Entity
from tidemark.verification.tally import VerdictTally


class FoundInMemory:
    """``FoundTables`` over a journal in memory."""

    def __init__(self, journal: MemoryJournal) -> None:
        self.journal = journal

    def read_heads(self, topic: str, keys: Sequence[str]) -> Mapping[str, Head]:
        heads = {key: self.journal.of(topic).head(key) for key in keys}
        return {key: head for key, head in heads.items() if head is not None}

    def read_rows(self, topic: str, wanted: Iterable[tuple[str, int]]) -> Iterator[tuple[str, FoundRow]]:
        for key, segment in wanted:
            for (at, seq_nr, timestamp), cells in self.journal.of(topic).rows(key).items():
                if at == segment:
                    yield key, found_in_memory(segment, seq_nr, timestamp, cells)

    def read_pointers(self, places: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        return MemoryTables(self.journal).read_pointers(places)


def found_in_memory(segment: int, seq_nr: int, timestamp: int, cells: Mapping[str, Any]) -> FoundRow:
    digest = row_digest(*(cells.get(name) for name in COLUMNS))
    return FoundRow(segment, seq_nr, timestamp, cells.get("meta_record_id"), digest)


def verdicts(house: JournalWorld, *keys: str, known: Basis | None = None) -> dict[str, EntityVerdict]:
    """What a verification thinks of these entities, by what is known now or was known before."""
    tables, entities = FoundInMemory(house.journal), [Entity(TOPIC, key) for key in keys or (KEY,)]
    return {one.key: one for one in judge_entities(known or basis(house), house.log, tables, entities)}


def basis(house: JournalWorld) -> Basis:
    return read_basis(house.process, house.log, house.positions)[0]


def case(house: JournalWorld) -> Case:
    return Case(house.process, house.log, house.positions, FoundInMemory(house.journal))


def verified(house: JournalWorld, *keys: str) -> Verification:
    """What is found of these entities; unknown ones are left out."""
    tally = VerdictTally()
    for verdict in verdicts(house, *keys).values():
        tally.note(verdict)
    return case(house).conclude(basis(house), tally, 0.0)


def given_delivered(*bindings: str, **settings: Any) -> JournalWorld:
    """A house whose log has these bindings of one partition, all delivered."""
    house = JournalWorld(ActionLog(), **settings)
    for history in bindings:
        house.actions.publish(history)
    house.go("in bulk")
    return house
