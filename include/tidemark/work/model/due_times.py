"""When an entry must be checked again, and the order in which due entries are checked.

An entry has one hint in ``due`` at any time. A hint may be too early: the check then replaces it. A hint that
is too late, or that readers have already passed, would lose the entry.
"""

from dataclasses import dataclass

from tidemark.work.model.entry import Entry, Hint
from tidemark.work.model.rules import Rules, expires_at, lapses_at


@dataclass(frozen=True, slots=True)
class Appointment:
    """The next time at which time alone changes an entry's state.

    Attributes:
        priority: The entry's priority.
        at: The time, in ms.
    """

    priority: int
    at: int


def appointment(entry: Entry, rules: Rules) -> Appointment:
    """A waiting entry's process time or the end of a claim's time limit; the expiry, if that comes first."""
    at = entry.request.process if entry.is_waiting else lapses_at(entry.start or 0, rules)
    return Appointment(entry.request.priority, min(at, expires_at(entry.request)))


def serves(hint: Hint | None, wanted: Appointment, now: int) -> bool:
    """Whether the hint has the entry checked in time and in the right order."""
    if hint is None or hint.priority != wanted.priority:
        return False
    if wanted.at > now:
        return now < hint.due_at <= wanted.at
    # Overdue: no reader has passed the hint while the entry refers to it, but ``at`` decides the order.
    return hint.due_at <= now and hint.at == wanted.at


def order(hint: Hint) -> tuple[int, int, int, str]:
    """The sort key of due work: smallest priority, then earliest time; the rest makes the order total."""
    return (hint.priority, hint.at, hint.due_at, hint.id)
