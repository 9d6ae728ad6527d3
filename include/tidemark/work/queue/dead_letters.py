"""Dead letters of a work journal: listing, marking as seen by an operator, and redriving.

A redriven letter is inserted as an ordinary packet, and recorded as sent again. Only ``see`` marks a letter
as seen; showing or reporting it does not.
"""

from collections.abc import Iterator

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.faults import FaultPoint, reach
from tidemark.work.model.days import days_back
from tidemark.work.model.decision import Outcome
from tidemark.work.model.entry import NEVER, DeadEntry, KeptLetter, Packet, Seen
from tidemark.work.queue.entry_updates import Parts
from tidemark.work.queue.journal import WorkJournal


def dead_letters(parts: Parts, now: int) -> Iterator[KeptLetter]:
    """Every stored dead letter that was not redriven, newest first."""
    yield from parts.archive.letters(days_back(now, parts.declared.dead_letters.days + 1))


def redrive(journal: WorkJournal, letter: DeadEntry) -> Outcome:
    """Inserts the letter's request again, due now; it is merged with a newer entry of the key.

    After a crash between the two steps the letter is still listed; redriving it again is idempotent. An
    expiry that has passed is dropped, because the operator wants the work done.
    """
    now, request = journal.parts.clock(), letter.request
    packet = Packet(
        key=letter.key,
        inserted=request.newest,
        process=now,
        payload=request.payload,
        priority=request.priority,
        expires=request.expires if request.expires > now else NEVER,
        schema=request.schema,
    )
    outcome = journal.insert(packet).outcome
    reach(FaultPoint.WORK_REDRIVEN)
    journal.parts.archive.dig_up(letter, now)
    return outcome


def see(parts: Parts, letter: DeadEntry, seen: Seen) -> None:
    """Marks a dead letter as seen by an operator; it stays a dead letter.

    A crash between the two steps leaves no entry in the audit trail; the letter itself has the mark.
    """
    parts.archive.see(letter, seen)
    reach(FaultPoint.WORK_SEEN)
    parts.registry.note(AuditEntry(f"seen {letter.key}", seen.by, seen.reason, seen.at))
