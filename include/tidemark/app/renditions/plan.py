"""What an action on a rendition would do, as plain data: shown first, carried out only when it is asked for.

A plan that is refused has the error that carrying it out would raise. Between plan and execution the
renditions may change, so every condition is judged again when it is carried out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tidemark.errors import TidemarkError


class RenditionAction(StrEnum):
    """What can be done to the renditions of a writer."""

    BUILD = "build"
    VERIFY = "verify"
    HANDOVER = "handover"
    ROLLBACK = "rollback"
    ABANDON = "abandon"
    RETIRE = "retire"


@dataclass(frozen=True, slots=True)
class RenditionPlan:
    """The effect of an action.

    Attributes:
        action: The action, as the command is called.
        pipeline: The pipeline's name.
        writer: The writer's name.
        number: The rendition.
        lines: The effect, one line each, for output.
        details: The effect, for ``--json``.
        refused: Why it cannot be carried out now; None where it can.
        changes: False where everything is as asked for already, which is no failure.
    """

    action: RenditionAction
    pipeline: str
    writer: str
    number: int
    lines: tuple[str, ...]
    details: Mapping[str, Any] = field(default_factory=dict)
    refused: TidemarkError | None = None
    changes: bool = True

    @property
    def head(self) -> str:
        """The action in one line."""
        return f"{self.pipeline}/{self.writer}: {self.action} rendition {self.number}"

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        return {
            "action": self.action.value,
            "pipeline": self.pipeline,
            "writer": self.writer,
            "number": self.number,
            "plan": list(self.lines),
            **self.details,
            "refused": str(self.refused) if self.refused else None,
        }

    def require_possible(self) -> None:
        """Raise the error of a plan that is refused."""
        if self.refused:
            raise self.refused
