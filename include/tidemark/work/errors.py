"""What a work journal refuses: errors with fields, each with what did not happen and what to do next."""

from collections.abc import Mapping, Sequence

from tidemark.errors import TidemarkError, closest
from tidemark.pipeline.problems import PipelineRefused
from tidemark.work.model.claim_loss import LossCause, LostClaim
from tidemark.work.model.days import iso, moment


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
    """The claim has ended: its holder does not hold the entry any more.

    ``cause`` says what ended it, ``at`` when (None where that is not known), ``holder`` and ``holder_token``
    which claim has the entry now.
    """

    def __init__(self, journal: str, key: str, token: str, doing: str, loss: LostClaim) -> None:
        super().__init__(
            journal,
            f"the claim of {key} is lost: {_CAUSES[loss.cause].format(_at(loss.at))}{_now(loss)}. `{doing}` "
            f"changed nothing. {_ADVICE.get(loss.cause, _DROP)}",
        )
        self.key, self.token, self.doing, self.cause = key, token, doing, loss.cause
        self.at = None if loss.at is None else moment(loss.at)
        self.holder, self.holder_token = loss.holder, loss.holder_token


_CAUSES = {
    LossCause.LAPSED: "its time limit passed{}",
    LossCause.EXPIRED: "the entry expired{}",
    LossCause.CANCELLED: "the entry was cancelled{}",
    LossCause.DONE: "it was said to be done{}",
    LossCause.FAILED: "it was said to have failed{}",
    LossCause.SNOOZED: "it was put off{}",
    LossCause.RELEASED: "it was given back{}",
    LossCause.DEAD: "the entry was given up{} and is a dead letter",
    LossCause.SUPERSEDED: "another claim came after it",
    LossCause.UNKNOWN: "no claim with this token is known",
}
_DROP = "Drop the work; if it is still wanted, another claim has it or will get it."
_ADVICE = {
    LossCause.CANCELLED: "Drop the work: it is not wanted any more.",
    LossCause.EXPIRED: "Drop the work: it is not wanted any more.",
    LossCause.DONE: "There is nothing left to do.",
    LossCause.DEAD: "Drop the work; `tidemark work dead` shows it, `tidemark work redrive` puts it back.",
    LossCause.UNKNOWN: "Check key and token; a claim that ended over a day ago is not remembered.",
}


def _at(at: int | None) -> str:
    return "" if at is None else f" at {iso(at)}"


def _now(loss: LostClaim) -> str:
    if loss.holder is not None:
        return f"; {loss.holder} holds the entry now (token {loss.holder_token})"
    if loss.after is not None:
        after = loss.after
        return f": that of {after.owner} (token {after.token}), {after.ending}{_at(after.ended)}"
    return ""


class OldTables(WorkError):
    """The journal's tables were made by an earlier version and lack a column."""

    def __init__(self, journal: str) -> None:
        super().__init__(
            journal,
            "its keyspace was made by an earlier version, which has no place for who looked at a dead "
            f"letter. Nothing was changed. Run once: tidemark work create {journal}",
        )


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
