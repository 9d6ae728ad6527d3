"""Verification of a few entities in this process, without Spark: only their messages and rows are read."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.journal.difference import Difference
from tidemark.journal_tables.reader import FoundTables, JournalReader, segments_to_read
from tidemark.log.model.manifest import LogFile
from tidemark.verification.basis import Basis, read_basis
from tidemark.verification.errors import NoSuchEntity
from tidemark.verification.journal.judge import EntityJudge, EntityVerdict
from tidemark.verification.journal.messages import files_of, read_in_order
from tidemark.verification.result import Verification, verification_of
from tidemark.verification.selection import Entity, Listed
from tidemark.verification.tally import MOST_TOLD, VerdictTally
from tidemark.writers.journal.writer import JournalWriter

READS_AGAIN = 3
"""How often entities and pointers are read at most, where the writer delivers meanwhile and they seem wrong:
a follow delivers every second."""


@dataclass(frozen=True)
class Case:
    """The subject of a verification: a writer, its tables and the log."""

    writer: JournalWriter
    log: PublishedLog
    positions: Positions
    tables: FoundTables

    @classmethod
    def of(cls, writer: JournalWriter, log: PublishedLog, positions: Positions) -> "Case":
        """The case of a writer, with the tables of its keyspace."""
        return cls(writer, log, positions, JournalReader.open(writer.connection, writer.declared))

    def begin(self) -> "tuple[Case, Basis]":
        """The basis as of now, and the case with the log that it was read from."""
        basis, log = read_basis(self.writer, self.log, self.positions)
        return replace(self, log=log), basis

    def begin_again(self, basis: Basis) -> "tuple[Case, Basis] | None":
        """As ``begin``, where the writer has delivered since ``basis``; None where it has not."""
        state = self.positions.load(self.writer.name)
        return None if state is None or state.version == basis.version else self.begin()

    def conclude(self, basis: Basis, tally: VerdictTally, began: float) -> Verification:
        """The result: the counted verdicts, and the pointers, which are always compared.

        Where the writer has delivered since ``basis`` was read, entities that seem different are judged
        again: rows that are newer than the basis are no difference.
        """
        judged = basis
        for _ in range(READS_AGAIN):
            newer = self.begin_again(judged) if tally.differences else None
            if newer is None:
                break
            case, judged = newer
            entities = sorted(
                {Entity(one.topic, one.key) for one in tally.differences if one.key is not None}
            )
            found = judge_entities(judged, case.log, self.tables, entities)
            tally = tally.replaced(list(found), entities)
        wrong = self._check_pointers(basis)
        return verification_of(basis, tally, wrong, time.monotonic() - began)

    def _check_pointers(self, basis: Basis) -> list[Difference]:
        wrong: list[Difference] = []
        for _ in range(READS_AGAIN):
            wrong = list(basis.check_pointers(self.tables.read_pointers(sorted(basis.pointers))))
            newer = self.begin_again(basis) if wrong else None
            if newer is None:
                break
            _, basis = newer
        return wrong


def verify_entities(
    writer: JournalWriter,
    log: PublishedLog,
    positions: Positions,
    keys: Sequence[str],
    topic: str | None = None,
    most: int = MOST_TOLD,
) -> Verification:
    """Verify the entities with these keys, in one topic or in all, and all pointers.

    ``most`` limits how many differences the result names. Raises ``NoSuchEntity`` for a key that is neither
    in the log nor in the tables.
    """
    return verify_case(Case.of(writer, log, positions), keys, topic, most)


def verify_case(
    case: Case, keys: Sequence[str], topic: str | None = None, most: int = MOST_TOLD
) -> Verification:
    """``verify_entities`` with given tables, which need not be in Cassandra."""
    began, tally = time.monotonic(), VerdictTally(most)
    case, basis = case.begin()
    topics = basis.require_topics([] if topic is None else [topic])
    entities = [Entity(one, key) for one in topics for key in dict.fromkeys(keys)]
    known = set()
    for verdict in judge_entities(basis, case.log, case.tables, entities):
        tally.note(verdict)
        known.add(verdict.key)
    for key in keys:
        if key not in known:
            raise NoSuchEntity(basis.pipeline, basis.writer, key)
    return case.conclude(basis, tally, began)


def judge_entities(
    basis: Basis,
    log: PublishedLog,
    tables: FoundTables,
    entities: Sequence[Entity],
    files: Sequence[LogFile] | None = None,
) -> Iterator[EntityVerdict]:
    """The verdicts about these entities, from the given files or from all files that may hold their messages.

    There is no verdict about an entity that is neither in the log nor in the tables.
    """
    judges = {entity: EntityJudge(basis, *entity) for entity in entities}
    choice = Listed(frozenset(entities))
    topics = sorted({entity.topic for entity in entities})
    sources = files_of(log.manifest, basis, topics) if files is None else files
    for entity, record in read_in_order(log.folder, sources, choice, basis.horizon):
        judges[entity].hear_message(record)
    for topic in topics:
        of_topic = {entity.key: judge for entity, judge in judges.items() if entity.topic == topic}
        yield from judge_found(topic, of_topic, tables)


def judge_found(
    topic: str, judges: Mapping[str, EntityJudge], tables: FoundTables
) -> Iterator[EntityVerdict]:
    """The verdicts of judges that have got all messages: heads and rows are read from the tables."""
    heads = tables.read_heads(topic, list(judges))
    for key, judge in judges.items():
        judge.hear_head(heads.get(key))
    wanted = (
        (key, segment)
        for key, judge in judges.items()
        for segment in segments_to_read(judge.segments, heads.get(key))
    )
    for key, row in tables.read_rows(topic, wanted):
        judges[key].hear_row(row)
    for judge in judges.values():
        if verdict := judge.conclude():
            yield verdict
