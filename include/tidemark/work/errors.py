"""Errors of work journals. Each has its facts as fields, and says what did not happen and what to do next."""

from collections.abc import Mapping, Sequence

from tidemark.errors import TidemarkError, closest, with_fields
from tidemark.pipeline.problems import PipelineRefused
from tidemark.work.model.claim_loss import LossCause, LostClaim
from tidemark.work.model.days import iso, moment


class JournalRefused(PipelineRefused):
    """A work journal's file that is not valid, with all its problems. Other files are not affected."""


class WorkError(TidemarkError):
    """The root of errors about one work journal."""

    def __init__(self, journal: str, problem: str) -> None:
        super().__init__(f"{journal}: {problem}")
        self.journal = journal


@with_fields
class UnknownJournal(WorkError):
    """No journal of this name was created."""

    journal: str
    known: Sequence[str]
    unseen: str = ""

    def __str__(self) -> str:
        meant = closest(self.journal, self.known)
        hint = f" Did you mean `{meant}`?" if meant else ""
        listed = f" There are: {', '.join(sorted(self.known))}." if self.known else " There is none yet."
        listed += f" Not all could be looked for ({self.unseen})." if self.unseen else ""
        return (
            f"{self.journal}: there is no such work journal.{hint}{listed} Nothing was changed. Declare it "
            f"in include/work and run: tidemark work create {self.journal}"
        )


@with_fields
class BadRequest(WorkError, ValueError):
    """An argument is not valid."""

    journal: str
    problem: str

    def __str__(self) -> str:
        return f"{self.journal}: {self.problem.rstrip('.')}. Nothing was changed."


class PayloadTooLarge(BadRequest):
    """A payload over the journal's limit."""

    def __init__(self, journal: str, key: str, size: int, limit: int) -> None:
        super().__init__(
            journal,
            f"the payload of {key} has {size:,} bytes, and the journal takes {limit:,}. Store it elsewhere "
            "and put a reference to it into the payload",
        )
        self.key, self.size, self.limit = key, size, limit


@with_fields
class ClaimLost(WorkError):
    """The claim has ended; the caller does not hold the entry any more.

    ``cause`` is how it ended, ``at`` when (None where that is unknown), ``holder`` and ``holder_token`` the
    claim that holds the entry now.
    """

    journal: str
    key: str
    token: str
    doing: str
    loss: LostClaim

    def __post_init__(self) -> None:
        self.cause = self.loss.cause
        self.at = None if self.loss.at is None else moment(self.loss.at)
        self.holder, self.holder_token = self.loss.holder, self.loss.holder_token
        super().__post_init__()

    def __str__(self) -> str:
        ended = _CAUSES[self.loss.cause].format(_at(self.loss.at))
        return (
            f"{self.journal}: the claim of {self.key} is lost: {ended}{_now(self.loss)}. `{self.doing}` "
            f"changed nothing. {_ADVICE.get(self.loss.cause, _DROP)}"
        )


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


@with_fields
class OldTables(WorkError):
    """The journal's tables were created by an earlier version and lack a column."""

    journal: str

    text = (
        "{journal}: its keyspace was made by an earlier version, which has no place for who looked at a dead "
        "letter. Nothing was changed. Run once: tidemark work create {journal}"
    )


@with_fields
class NotTheSameJournal(WorkError):
    """A declaration that would change the meaning of existing entries."""

    journal: str
    what: str
    advice: str

    text = "{journal}: it was created with another `{what}`. Nothing was changed. {advice}"


@with_fields
class TooBusy(WorkError):
    """Other processes kept changing the same entry."""

    journal: str
    key: str
    times: int

    text = (
        "{journal}: {key} was changed by others {times} times in a row while this change was being made. It "
        "was not made. Try again."
    )


@with_fields
class SweepIncomplete(TidemarkError):
    """Some journals could not be swept; the others were."""

    errors: Mapping[str, str]
    journals: int

    def __str__(self) -> str:
        listed = "".join((f"\n{journal}: {error}" for journal, error in sorted(self.errors.items())))
        return (
            f"{self.journals - len(self.errors)} of {self.journals} work journals were swept. Remove the "
            f"cause, and let work.sweep run again.{listed}"
        )
