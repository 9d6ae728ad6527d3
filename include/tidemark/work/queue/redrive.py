"""Dead letters back into their journal: as a packet like any other, then noted as sent again."""

from tidemark.faults import FaultPoint, reach
from tidemark.work.model.decision import Outcome
from tidemark.work.model.entry import NEVER, DeadEntry, Packet
from tidemark.work.queue.journal import WorkJournal


def redrive(journal: WorkJournal, letter: DeadEntry) -> Outcome:
    """Ask for the same again, as soon as possible; what has been asked for since is newer, and merged.

    A death in between leaves the letter where it is, and sending it once more merges with the first time. An
    expiry that has passed is dropped: whoever sends it again wants it done.
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
