"""What operators may ask ``<pipeline>.resume`` to do and may answer it, and what each needs. Pure.

The same rules hold in Airflow's forms, before anything is started (``say_why``), and in the tasks.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Action(StrEnum):
    """What a run of ``resume`` does."""

    RESUME = "resume"
    ACKNOWLEDGE = "acknowledge"
    REWIND = "rewind"
    STOP = "stop"
    OPEN = "open"


class Answer(StrEnum):
    """What an operator may say when something has failed again."""

    RETRY = "Retry"
    ACKNOWLEDGE = "Acknowledge and dead-letter"
    STOP = "Stop"


def missing_of_run(conf: Mapping[str, Any]) -> str | None:
    """What a run with these parameters needs and was not given; None where nothing is missing."""
    action = conf.get("action") or Action.RESUME
    if action == Action.RESUME:
        return None
    if action in (Action.ACKNOWLEDGE, Action.REWIND) and conf.get("id") is None:
        return f"say which id to {action}, in the parameter `id`."
    if _is_blank(conf.get("reason")):
        return f"say why, in the parameter `reason`: to {action} needs one."
    return None


def missing_of_answer(chosen: Any, given: Mapping[str, Any]) -> str | None:
    """What an answer needs and was not given; None where nothing is missing."""
    if isinstance(chosen, list) and Answer.ACKNOWLEDGE in chosen and _is_blank(given.get("reason")):
        return "say why, in the field `reason`: it is kept with the dead letter."
    return None


def _is_blank(reason: Any) -> bool:
    return not (isinstance(reason, str) and reason.strip())
