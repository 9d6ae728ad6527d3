"""The report of dead letters that no operator has marked as seen, per journal, as its declaration asks for.

Read-only: reporting a letter does not mark it as seen.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tidemark.work.model.days import iso
from tidemark.work.model.declaration import DeadReport
from tidemark.work.model.entry import DeadEntry
from tidemark.work.model.entry_view import shown_key
from tidemark.work.queue.dead_letters import dead_letters
from tidemark.work.queue.entry_updates import Parts

NEWEST = 10
"""How many letters a report names."""
LONGEST = 200
"""Characters of an error that a report shows."""


@dataclass(frozen=True, slots=True)
class ReportedLetter:
    """One dead letter in a report, without its payload.

    Attributes:
        key: The key in the form of the declaration.
        died: When it became a dead letter, as an ISO text.
        reason: Why.
        error: The beginning of the last failure's text; None without one.
    """

    key: Any
    died: str
    reason: str
    error: str | None


@dataclass(frozen=True, slots=True)
class UnseenLetters:
    """The dead letters of one journal that no operator has marked as seen.

    Attributes:
        journal: The journal's name.
        report: What its declaration wants done about them.
        count: How many there are.
        newest: The newest of them, newest first, at most ``NEWEST``.
    """

    journal: str
    report: DeadReport
    count: int
    newest: tuple[ReportedLetter, ...]

    @property
    def is_failure(self) -> bool:
        """Whether they fail the task that reports them."""
        return self.count > 0 and self.report is DeadReport.FAIL

    def to_dict(self) -> dict[str, object]:
        """The form of task results and asset events."""
        return {**asdict(self), "report": self.report.value, "newest": [asdict(one) for one in self.newest]}

    @classmethod
    def from_dict(cls, found: Mapping[str, object]) -> "UnseenLetters":
        """Reads what ``to_dict`` made."""
        newest = found["newest"]
        assert isinstance(newest, list)
        return cls(
            str(found["journal"]),
            DeadReport(str(found["report"])),
            int(str(found["count"])),
            tuple(ReportedLetter(**one) for one in newest),
        )


def find_unseen(parts: Parts) -> UnseenLetters:
    """Counts the unseen letters and lists the newest. With ``report_dead: never`` nothing is read."""
    report = parts.declared.report_dead
    if report is DeadReport.NEVER:
        return UnseenLetters(parts.declared.name, report, 0, ())
    unseen = [kept.letter for kept in dead_letters(parts, parts.clock()) if kept.seen is None]
    newest = sorted(unseen, key=lambda letter: letter.died, reverse=True)[:NEWEST]
    return UnseenLetters(
        parts.declared.name, report, len(unseen), tuple(_shown(parts, one) for one in newest)
    )


def lines_about(found: UnseenLetters) -> list[str]:
    """The report as lines for operators, with the commands to use; empty where there is nothing to report."""
    if not found.count:
        return []
    are = "is 1 dead letter" if found.count == 1 else f"are {found.count:,} dead letters"
    lines = [f"{found.journal}: there {are} that no person has looked at."]
    lines += [
        f"  {one.key}, {one.died}: {one.reason} ({one.error or 'no error text'})" for one in found.newest
    ]
    if found.count > len(found.newest):
        lines.append(f"  and {found.count - len(found.newest)} older ones")
    return [
        *lines,
        f"  See all: tidemark work dead {found.journal} --unseen",
        f'  Put them back: tidemark work redrive {found.journal} [KEY] --execute --reason "…"',
        f'  Or leave them: tidemark work seen {found.journal} [KEY] --execute --reason "…"',
    ]


def failure_of(found: Iterable[UnseenLetters], problems: Sequence[str] = ()) -> str | None:
    """The error text of the reporting task; None where the task succeeds."""
    failing = [line for one in found if one.is_failure for line in lines_about(one)]
    return "\n".join([*failing, *problems]) or None


def _shown(parts: Parts, letter: DeadEntry) -> ReportedLetter:
    error, key = (
        None if letter.error is None else letter.error[:LONGEST],
        shown_key(parts.declared, letter.key),
    )
    return ReportedLetter(key, iso(letter.died), letter.reason.value, error)
