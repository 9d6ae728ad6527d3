"""Verification of a sample of the entities that a delivery has touched, in the process that delivered.

The cost must not grow with the log, so only the newest messages are read. An entity that began before them is
counted as not provable. ``verify_with_spark`` verifies everything.
"""

import heapq
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.journal_tables.reader import FoundTables
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.model.manifest import LogFile
from tidemark.verification.basis import Basis
from tidemark.verification.journal.entities import Case, judge_entities
from tidemark.verification.journal.messages import files_backwards, read_keys
from tidemark.verification.result import Verification
from tidemark.verification.selection import Entity, hashes_of
from tidemark.verification.tally import MOST_TOLD, VerdictTally
from tidemark.writers.journal.writer import JournalWriter

NEWEST_MESSAGES = 1_000_000
"""How many messages are read at most in search of an entity's beginning, beside those just delivered."""


def verify_sample(
    writer: JournalWriter,
    log: PublishedLog,
    positions: Positions,
    after: int,
    count: int,
    most: int = MOST_TOLD,
) -> tuple[Verification, tuple[Entity, ...]]:
    """Verify at most ``count`` of the entities with messages after an id, and all pointers.

    Returns the result and the sample. ``most`` limits how many differences the result names.
    """
    began = time.monotonic()
    case, basis = Case.of(writer, log, positions).begin()
    files, unread = newest_files(files_backwards(case.log.manifest, basis), after)
    sample = draw(basis, case.log, files, after, count)
    tally = judge_sample(basis, case.log, case.tables, files, unread, sample, most)
    return case.conclude(basis, tally, began), sample


def judge_sample(
    basis: Basis,
    log: PublishedLog,
    tables: FoundTables,
    files: Sequence[LogFile],
    unread: int,
    sample: Sequence[Entity],
    most: int = MOST_TOLD,
) -> VerdictTally:
    """The verdicts about these entities, from the messages of these files alone; up to the id ``unread``,
    messages may be in other files."""
    cut = {place for place, first_id in basis.first_ids.items() if first_id <= unread}
    tally, narrow = VerdictTally(most), replace(basis, ground=basis.ground.without_beginning(cut))
    for verdict in judge_entities(narrow, log, tables, sample, files):
        tally.note(verdict)
    return tally


def newest_files(backwards: Iterable[LogFile], after: int) -> tuple[list[LogFile], int]:
    """All files with messages after an id, and earlier ones up to ``NEWEST_MESSAGES``, in id order; and the
    highest id in a file that is left out, −1 where none is.

    ``backwards`` has the highest last id first; it is read no further than needed.
    """
    kept: list[LogFile] = []
    messages, unread = 0, NOTHING_YET
    for file in backwards:
        if file.last_id <= after and messages >= NEWEST_MESSAGES:
            unread = file.last_id
            break
        kept.append(file)
        messages += file.count
    return sorted(kept, key=lambda one: one.first_id), unread


def draw(
    basis: Basis, log: PublishedLog, files: Sequence[LogFile], after: int, count: int
) -> tuple[Entity, ...]:
    """At most ``count`` of the entities with messages after an id.

    The position seeds the sample: the same position gives the same sample, another one a different sample.
    """

    def candidates() -> Iterator[tuple[int, Entity]]:
        for file in files:
            if file.last_id > after and file.first_id <= basis.position:
                keys = sorted(read_keys(log.folder, file, basis.position, after + 1))
                hashes = hashes_of(file.topic, keys, basis.position)
                yield from zip(hashes.tolist(), (Entity(file.topic, key) for key in keys), strict=True)

    # An entity has one hash, so duplicates from several files are adjacent in the order of hashes.
    smallest = heapq.nsmallest(2 * count, candidates())
    return tuple(dict.fromkeys(entity for _, entity in smallest))[:count]
