"""Why a compaction does not go on. The log is as it was in every case."""

from collections.abc import Iterable

from tidemark.errors import TidemarkError, with_fields


class CompactionError(TidemarkError):
    """A compaction was refused or stopped; the log is as it was."""


@with_fields
class PlanOutdated(CompactionError):
    """What a plan was made from is no longer so."""

    pipeline: str
    plan: str
    reason: str

    text = (
        "{pipeline}: plan {plan:.12} no longer holds: {reason}. The log was not changed. Make a new one: "
        "tidemark log compact {pipeline}"
    )


@with_fields
class NotConserved(CompactionError):
    """What a compaction has kept and dropped does not account for what it has read."""

    needs_person = True

    pipeline: str
    plan: str
    problem: str

    text = (
        "{pipeline}: plan {plan:.12} does not account for every message: {problem}. The log was not changed, "
        "and nothing of the new files is part of it. Verify the log (tidemark log verify {pipeline}) and "
        "report this with the plan."
    )


@with_fields
class NoPlan(CompactionError):
    """A plan is asked for that nobody has made, or that was swept."""

    pipeline: str
    plan: str

    text = (
        "{pipeline}: there is no plan {plan:.12}. Nothing was done. Make one: tidemark log compact {pipeline}"
    )


@with_fields
class NeverCompacted(CompactionError):
    """The pipeline's policy is to keep everything."""

    needs_person = True

    pipeline: str
    policy: str = "none"

    text = (
        "{pipeline}: its policy is `{policy}`, so nothing ever leaves the log. Nothing was done. Choose "
        "another in `log.compaction.policy`, or for once with --policy."
    )


@with_fields
class PolicyUnfit(CompactionError):
    """By this policy, the messages of the log would not be understood."""

    needs_person = True

    pipeline: str
    policy: str
    message_format: str
    understood: Iterable[str] = ("kafka-journal",)

    def __str__(self) -> str:
        wanted = " or ".join(sorted(self.understood))
        return (
            f"{self.pipeline}: policy `{self.policy}` is for {wanted} messages, and these are "
            f"{self.message_format}: none of them would be understood, and all could go. Nothing was done. "
            "Choose `latest` or `progress`."
        )
