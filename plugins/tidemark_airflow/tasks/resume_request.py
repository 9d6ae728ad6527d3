"""The actions and answers that ``<pipeline>.resume`` accepts, and the fields that each one needs.

Pure. The same rules hold for Airflow's forms and API, before a run is started (``pages.require_reason``), and
for the tasks.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class ResumeAction(StrEnum):
    """What a run of ``resume`` does."""

    RESUME = "resume"
    ACKNOWLEDGE = "acknowledge"
    REWIND = "rewind"
    STOP = "stop"
    OPEN = "open"


class ResumeAnswer(StrEnum):
    """The answers that an operator may give when a resume has failed again."""

    RETRY = "Retry"
    ACKNOWLEDGE = "Acknowledge and dead-letter"
    STOP = "Stop"


def missing_of_run(conf: Mapping[str, Any]) -> str | None:
    """The field that a run with these parameters lacks, as a sentence; None where it has all."""
    action = conf.get("action") or ResumeAction.RESUME
    if action == ResumeAction.RESUME:
        return None
    if action in (ResumeAction.ACKNOWLEDGE, ResumeAction.REWIND) and conf.get("id") is None:
        return f"say which id to {action}, in the parameter `id`."
    if _is_blank(conf.get("reason")):
        return f"say why, in the parameter `reason`: to {action} needs one."
    return None


def missing_of_answer(chosen: Any, given: Mapping[str, Any]) -> str | None:
    """The field that an answer lacks, as a sentence; None where it has all."""
    if isinstance(chosen, list) and ResumeAnswer.ACKNOWLEDGE in chosen and _is_blank(given.get("reason")):
        return "say why, in the field `reason`: it is kept with the dead letter."
    return None


def _is_blank(reason: Any) -> bool:
    return not (isinstance(reason, str) and reason.strip())
