"""What a work journal refuses: errors with fields, each with what did not happen and what to do next."""

from collections.abc import Mapping, Sequence

from tidemark.delivery.pipeline_problems import PipelineRefused
from tidemark.errors import TidemarkError, closest


class JournalRefused(PipelineRefused):
    """A file of a work journal that cannot be used, with everything that is wrong with it; others go on."""


class WorkError(TidemarkError):
    """The root of what goes wrong with one work journal."""

    def __init__(self, journal: str, problem: str) -> None:
        super().__init__(f"{journal}: {problem}")
        self.journal, self.problem = journal, problem


class UnknownJournal(WorkError):
    """Nobody has created a journal of this name."""

    def __init__(self, journal: str, known: Sequence[str], unseen: str = "") -> None:
        meant = closest(journal, known)
        hint = f" Did you mean `{meant}`?" if meant else ""
        listed = f" There are: {', '.join(sorted(known))}." if known else " There is none yet."
        listed += f" Not all could be looked for ({unseen})." if unseen else ""
        super().__init__(
            journal,
            f"there is no such work journal.{hint}{listed} Nothing was changed. Declare it in "
            f"include/work and run: tidemark work create {journal}",
        )
        self.known = tuple(known)


class BadRequest(WorkError, ValueError):
    """What was asked of a journal cannot be meant."""

    def __init__(self, journal: str, problem: str) -> None:
        super().__init__(journal, f"{problem.rstrip('.')}. Nothing was changed.")
        self.problem = problem


class PayloadTooLarge(BadRequest):
    """A payload over the journal's limit."""

    def __init__(self, journal: str, key: str, size: int, limit: int) -> None:
        super().__init__(
            journal,
            f"the payload of {key} has {size:,} bytes, and the journal takes {limit:,}. Store it elsewhere "
            "and put a reference to it into the payload",
        )
        self.key, self.size, self.limit = key, size, limit


class ClaimLost(WorkError):
    """Whoever says so does not hold the entry any more."""

    def __init__(self, journal: str, key: str, token: str, doing: str) -> None:
        super().__init__(
            journal,
            f"the claim of {key} is lost: its time limit passed, it was cancelled, or it expired. `{doing}` "
            "changed nothing. Drop the work; if it is still wanted, somebody else has it or will get it.",
        )
        self.key, self.token, self.doing = key, token, doing


class NotTheSameJournal(WorkError):
    """A declaration that would change what existing entries mean."""

    def __init__(self, journal: str, what: str, advice: str) -> None:
        super().__init__(journal, f"it was created with another `{what}`. Nothing was changed. {advice}")
        self.what = what


class TooBusy(WorkError):
    """Others changed the same entry again and again."""

    def __init__(self, journal: str, key: str, times: int) -> None:
        super().__init__(
            journal,
            f"{key} was changed by others {times} times in a row while this change was being made. It was "
            "not made. Try again.",
        )
        self.key, self.times = key, times


class SweepIncomplete(TidemarkError):
    """Some journals could not be swept; the others were."""

    def __init__(self, errors: Mapping[str, str], journals: int) -> None:
        listed = "".join(f"\n{journal}: {error}" for journal, error in sorted(errors.items()))
        super().__init__(
            f"{journals - len(errors)} of {journals} work journals were swept. Remove the cause, and let "
            f"work.sweep run again.{listed}"
        )
        self.errors = dict(errors)
