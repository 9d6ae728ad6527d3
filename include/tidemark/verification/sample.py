"""A few of the entities that a delivery has touched, verified in this process right after it.

It must cost the same whether the log is young or old, so only the newest messages are looked at: an entity
that began before them is not provable here, which is no fault. To prove everything there is
``verify_with_spark``.
"""

import heapq
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.journal_tables.reader import FoundTables
from tidemark.log.model.manifest import LogFile
from tidemark.verification.basis import Basis
from tidemark.verification.journal.entities import Case, judge_entities
from tidemark.verification.journal.messages import files_of, read_keys
from tidemark.verification.result import Verification
from tidemark.verification.selection import Entity, hashes_of
from tidemark.verification.tally import MOST_TOLD, VerdictTally
from tidemark.writers.journal.writer import JournalWriter

NEWEST_MESSAGES = 1_000_000
"""How far back an entity's beginning is looked for, besides what was delivered just now."""


def verify_sample(
    writer: JournalWriter,
    log: PublishedLog,
    positions: Positions,
    after: int,
    count: int,
    most: int = MOST_TOLD,
) -> tuple[Verification, tuple[Entity, ...]]:
    """Verify at most so many of the entities with messages after an id, and all pointers; which they were."""
    case = Case.of(writer, log.reopened(), positions)
    began, basis = time.monotonic(), case.basis
    files = newest_files(files_of(case.log.manifest, basis), after)
    sample = draw(basis, case.log, files, after, count)
    tally = judge_sample(basis, case.log, case.tables, files, sample, most)
    return case.conclude(basis, tally, began), sample


def judge_sample(
    basis: Basis,
    log: PublishedLog,
    tables: FoundTables,
    files: Sequence[LogFile],
    sample: Sequence[Entity],
    most: int = MOST_TOLD,
) -> VerdictTally:
    """What to think of these entities, by nothing but the messages of these files."""
    looked_at = {file.path for file in files}
    cut = {(one.topic, one.partition) for one in files_of(log.manifest, basis) if one.path not in looked_at}
    tally, narrow = VerdictTally(most), replace(basis, ground=basis.ground.without_beginning(cut))
    for verdict in judge_entities(narrow, log, tables, sample, files):
        tally.note(verdict)
    return tally


def newest_files(files: Sequence[LogFile], after: int) -> list[LogFile]:
    """Everything after an id, and before it as much as is cheap to read; in id order."""
    kept: list[LogFile] = []
    messages = 0
    for file in sorted(files, key=lambda one: one.first_id, reverse=True):
        if file.last_id <= after and messages >= NEWEST_MESSAGES:
            continue  # one that begins earlier may end later
        kept.append(file)
        messages += file.count
    return kept[::-1]


def draw(
    basis: Basis, log: PublishedLog, files: Sequence[LogFile], after: int, count: int
) -> tuple[Entity, ...]:
    """So many of the entities with messages after an id; others at every position, the same at the same."""

    def candidates() -> Iterator[tuple[int, Entity]]:
        for file in files:
            if file.last_id > after and file.first_id <= basis.position:
                keys = sorted(read_keys(log.folder, file, basis.position, after + 1))
                hashes = hashes_of(file.topic, keys, basis.position)
                yield from zip(hashes.tolist(), (Entity(file.topic, key) for key in keys), strict=True)

    # An entity has one hash, so the same one out of two files comes twice in a row.
    smallest = heapq.nsmallest(2 * count, candidates())
    return tuple(dict.fromkeys(entity for _, entity in smallest))[:count]
