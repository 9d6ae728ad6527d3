"""Errors of compactions. None of them changes the log."""

from collections.abc import Iterable

from tidemark.errors import TidemarkError, with_fields


class CompactionError(TidemarkError):
    """A compaction was refused or stopped; the log was not changed."""


@with_fields
class PlanOutdated(CompactionError):
    """The state that a plan was made from has changed."""

    pipeline: str
    plan: str
    reason: str

    text = (
        "{pipeline}: plan {plan:.12} no longer holds: {reason}. The log was not changed. Make a new one: "
        "tidemark log compact {pipeline}"
    )


@with_fields
class NotConserved(CompactionError):
    """The messages that a compaction kept and dropped are not those that it read."""

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
    """The requested plan was never made, or was swept."""

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
    """The policy does not understand the format of the log's messages."""

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
