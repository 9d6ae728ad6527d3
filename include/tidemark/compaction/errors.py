"""Why a compaction does not go on. The log is as it was in every case."""

from tidemark.errors import TidemarkError, with_fields


class CompactionError(TidemarkError):
    """A compaction was refused or stopped; the log is as it was."""


@with_fields
class PlanOutdated(CompactionError):
    """What a plan was made from is no longer so."""

    pipeline: str
    plan: str
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.pipeline}: plan {self.plan[:12]} no longer holds: {self.reason}. The log was not "
            f"changed. Make a new one: tidemark log compact {self.pipeline}"
        )


@with_fields
class NotConserved(CompactionError):
    """What a compaction has kept and dropped does not account for what it has read."""

    needs_person = True

    pipeline: str
    plan: str
    problem: str

    def __str__(self) -> str:
        return (
            f"{self.pipeline}: plan {self.plan[:12]} does not account for every message: {self.problem}. "
            "The log was not changed, and nothing of the new files is part of it. Verify the log (tidemark "
            f"log verify {self.pipeline}) and report this with the plan."
        )


@with_fields
class NoPlan(CompactionError):
    """A plan is asked for that nobody has made, or that was swept."""

    pipeline: str
    plan: str

    def __str__(self) -> str:
        return (
            f"{self.pipeline}: there is no plan {self.plan[:12]}. Nothing was done. Make one: tidemark log "
            f"compact {self.pipeline}"
        )


@with_fields
class NeverCompacted(CompactionError):
    """The pipeline's policy is to keep everything."""

    needs_person = True

    pipeline: str

    def __str__(self) -> str:
        return (
            f"{self.pipeline}: its policy is `none`, so nothing ever leaves the log. Nothing was done. "
            "Choose another in `log.compaction.policy`, or for once with --policy."
        )


@with_fields
class PolicyUnfit(CompactionError):
    """By this policy, the messages of the log would not be understood."""

    needs_person = True

    pipeline: str
    policy: str
    message_format: str

    def __str__(self) -> str:
        return (
            f"{self.pipeline}: policy `{self.policy}` is for kafka-journal messages, and these are "
            f"{self.message_format}: none of them would be an action, and all would go. Nothing was done. "
            "Choose `latest` or `progress`."
        )
