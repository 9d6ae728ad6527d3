"""Dead letters of a work journal: listed, marked as seen by a person, and put back into their journal.

A letter that is put back is a packet like any other, and noted as sent again. Nothing but ``see`` marks a
letter as seen: neither showing it nor reporting it does.
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
    """Every dead letter that is kept, newest first."""
    yield from parts.archive.letters(days_back(now, parts.declared.dead_letters.days + 1))


def redrive(journal: WorkJournal, letter: DeadEntry) -> Outcome:
    """Ask for the same again, as soon as possible; what has been asked for since is newer, and merged.

    A death in between leaves the letter where it is, and sending it once more merges with the first time. An
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
    """Note which person looked at a dead letter; it stays one.

    A death in between leaves no deed; the letter says all the same who looked at it, when and why.
    """
    parts.archive.see(letter, seen)
    reach(FaultPoint.WORK_SEEN)
    parts.registry.note(AuditEntry(f"seen {letter.key}", seen.by, seen.reason, seen.at))
