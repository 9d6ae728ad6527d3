"""Why a compaction does not go on. The log is as it was in every case."""

from collections.abc import Iterable

from tidemark.errors import TidemarkError


class PlanOutdated(TidemarkError):
    """What a plan was made from is no longer so."""

    def __init__(self, pipeline: str, plan: str, reason: str) -> None:
        super().__init__(
            f"{pipeline}: plan {plan[:12]} no longer holds: {reason}. The log was not changed. "
            f"Make a new one: tidemark log compact {pipeline}"
        )
        self.pipeline, self.plan, self.reason = pipeline, plan, reason


class NotConserved(TidemarkError):
    """What a compaction has kept and dropped does not account for what it has read."""

    needs_person = True

    def __init__(self, pipeline: str, plan: str, problem: str) -> None:
        super().__init__(
            f"{pipeline}: plan {plan[:12]} does not account for every message: {problem}. The log was not "
            "changed, and nothing of the new files is part of it. Verify the log (tidemark log verify "
            f"{pipeline}) and report this with the plan."
        )
        self.pipeline, self.plan, self.problem = pipeline, plan, problem


class NoPlan(TidemarkError):
    """A plan is asked for that nobody has made, or that was swept."""

    def __init__(self, pipeline: str, plan: str) -> None:
        super().__init__(
            f"{pipeline}: there is no plan {plan[:12]}. Nothing was done. "
            f"Make one: tidemark log compact {pipeline}"
        )
        self.pipeline, self.plan = pipeline, plan


class NeverCompacted(TidemarkError):
    """The pipeline's policy is to keep everything."""

    needs_person = True

    def __init__(self, pipeline: str, policy: str = "none") -> None:
        super().__init__(
            f"{pipeline}: its policy is `{policy}`, so nothing ever leaves the log. Nothing was done. Choose "
            "another in `log.compaction.policy`, or for once with --policy."
        )
        self.pipeline, self.policy = pipeline, policy


class PolicyUnfit(TidemarkError):
    """By this policy, the messages of the log would not be understood."""

    needs_person = True

    def __init__(
        self, pipeline: str, policy: str, message_format: str, understood: Iterable[str] = ("kafka-journal",)
    ) -> None:
        wanted = " or ".join(sorted(understood))
        super().__init__(
            f"{pipeline}: policy `{policy}` is for {wanted} messages, and these are {message_format}: "
            "none of them would be understood, and all could go. Nothing was done. Choose `latest` or "
            "`progress`."
        )
        self.pipeline, self.policy, self.message_format = pipeline, policy, message_format
