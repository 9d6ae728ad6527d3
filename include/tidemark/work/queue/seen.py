"""Dead letters that a person has looked at: kept with the letter itself, then among the journal's deeds.

Nothing else marks a letter as seen: neither showing it nor reporting it does.
"""

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.faults import FaultPoint, reach
from tidemark.work.model.entry import DeadEntry, Seen
from tidemark.work.queue.entry_updates import Parts


def see(parts: Parts, letter: DeadEntry, seen: Seen) -> None:
    """Note which person looked at a dead letter; it stays one.

    A death in between leaves no deed; the letter says all the same who looked at it, when and why.
    """
    parts.archive.see(letter, seen)
    reach(FaultPoint.WORK_SEEN)
    parts.registry.note(AuditEntry(f"seen {letter.key}", seen.by, seen.reason, seen.at))
