"""Where a person comes in: an error that only they can help with, and a plan that waits for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from tidemark.errors import TidemarkError


class Approval(StrEnum):
    """What a person may say to a plan."""

    APPROVE = "Approve"
    REJECT = "Reject"


def is_approved(pipeline: str, answer: dict[str, Any]) -> bool:
    """Whether the person approved the plan; says who it was."""
    user = answer.get("responded_by_user") or {}
    who = user.get("name") or user.get("id") or "unknown"
    (chosen,) = answer["chosen_options"]
    print(f"{pipeline}: {who}: {chosen}")
    return bool(chosen == Approval.APPROVE)


@contextmanager
def asking_a_person() -> Iterator[None]:
    """Fail without retries where only a person can help."""
    try:
        yield
    except TidemarkError as error:
        if error.needs_person:
            raise AirflowFailException(str(error)) from None
        raise
