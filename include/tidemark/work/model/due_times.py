"""When somebody has to look at an entry again, and in which order those whose time has come are looked at.

An entry has one hint in ``due`` at any time. It need not be exact: one that comes too early is looked at,
found early and replaced. One that comes too late, or was passed already, would lose the entry.
"""

from dataclasses import dataclass

from tidemark.work.model.entry import Entry, Hint
from tidemark.work.model.rules import Rules, expires_at, lapses_at


@dataclass(frozen=True, slots=True)
class Appointment:
    """The next moment at which time alone changes what may be done with an entry."""

    priority: int
    at: int


def appointment(entry: Entry, rules: Rules) -> Appointment:
    """The process date of a waiting entry, the end of a claim; the expiry, if that comes first."""
    at = entry.request.process if entry.is_waiting else lapses_at(entry.start or 0, rules)
    return Appointment(entry.request.priority, min(at, expires_at(entry.request)))


def serves(hint: Hint | None, wanted: Appointment, now: int) -> bool:
    """Whether this hint is enough to have the entry looked at in time and in its order."""
    if hint is None or hint.priority != wanted.priority:
        return False
    if wanted.at > now:
        return now < hint.due_at <= wanted.at
    # Overdue: nobody has passed the hint while the entry names it, but the order goes by its date.
    return hint.due_at <= now and hint.at == wanted.at


def order(hint: Hint) -> tuple[int, int, int, str]:
    """The order of work: smallest priority, then earliest date, then whatever keeps it strict."""
    return (hint.priority, hint.at, hint.due_at, hint.id)
