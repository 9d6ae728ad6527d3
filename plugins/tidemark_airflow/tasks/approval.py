"""A plan that waits for a person: the answers they may give, and what each means."""

from enum import StrEnum
from typing import Any


class Approval(StrEnum):
    """The answers to a plan."""

    APPROVE = "Approve"
    REJECT = "Reject"


def user_of(answer: dict[str, Any]) -> str:
    """The name of the user who answered, for the audit trail."""
    user = answer.get("responded_by_user") or {}
    return str(user.get("name") or user.get("id") or "unknown")


def is_approved(pipeline: str, answer: dict[str, Any]) -> bool:
    """Whether the plan was approved; prints the user and their answer."""
    (chosen,) = answer["chosen_options"]
    print(f"{pipeline}: {user_of(answer)}: {chosen}")
    return bool(chosen == Approval.APPROVE)
