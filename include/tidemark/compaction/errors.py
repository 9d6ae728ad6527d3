"""Why a compaction does not go on. The log is as it was in every case."""

from tidemark.errors import TidemarkError


class CompactionError(TidemarkError):
    """A compaction was refused or stopped; the log is as it was."""


class PlanOutdated(CompactionError):
    """What a plan was made from is no longer so."""

    def __init__(self, pipeline: str, plan: str, reason: str) -> None:
        super().__init__(
            f"{pipeline}: plan {plan[:12]} no longer holds: {reason}. The log was not changed. "
            f"Make a new one: tidemark log compact {pipeline}"
        )
        self.pipeline, self.plan, self.reason = pipeline, plan, reason


class NotConserved(CompactionError):
    """What a compaction has kept and dropped does not account for what it has read."""

    needs_person = True

    def __init__(self, pipeline: str, plan: str, problem: str) -> None:
        super().__init__(
            f"{pipeline}: plan {plan[:12]} does not account for every message: {problem}. The log was not "
            "changed, and nothing of the new files is part of it. Verify the log (tidemark log verify "
            f"{pipeline}) and report this with the plan."
        )
        self.pipeline, self.plan, self.problem = pipeline, plan, problem


class NoPlan(CompactionError):
    """A plan is asked for that nobody has made, or that was swept."""

    def __init__(self, pipeline: str, plan: str) -> None:
        super().__init__(
            f"{pipeline}: there is no plan {plan[:12]}. Nothing was done. "
            f"Make one: tidemark log compact {pipeline}"
        )
        self.pipeline, self.plan = pipeline, plan


class NeverCompacted(CompactionError):
    """The pipeline's policy is to keep everything."""

    needs_person = True

    def __init__(self, pipeline: str) -> None:
        super().__init__(
            f"{pipeline}: its policy is `none`, so nothing ever leaves the log. Nothing was done. Choose "
            "another in `log.compaction.policy`, or for once with --policy."
        )
        self.pipeline = pipeline


class PolicyUnfit(CompactionError):
    """By this policy, the messages of the log would not be understood."""

    needs_person = True

    def __init__(self, pipeline: str, policy: str, message_format: str) -> None:
        super().__init__(
            f"{pipeline}: policy `{policy}` is for kafka-journal messages, and these are {message_format}: "
            "none of them would be an action, and all would go. Nothing was done. Choose `latest` or "
            "`progress`."
        )
        self.pipeline, self.policy, self.message_format = pipeline, policy, message_format
