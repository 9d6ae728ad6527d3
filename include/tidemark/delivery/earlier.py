"""The pipelines of the same name that were forgotten, as far as the target of a new writer is concerned.

What a pipeline's writers wrote outlives it, and ids begin anew with the next one of its name: those that are
in a target already must not be taken for the new ones. Pure values; nothing is asked or changed here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.delivery.writer_state import FORGET_PIPELINE, Deed
from tidemark.log.control import Decision


@dataclass(frozen=True, slots=True)
class LeftOver:
    """What they have left in a target, and why nothing may be added to it."""

    problem: str
    way_out: str


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a new writer has to know of them."""

    had_writer: bool
    """Whether one of them had a writer of this name, and none of the name was registered since."""

    @classmethod
    def of(cls, forgettings: Sequence[Decision], deeds: Sequence[Deed]) -> "Earlier":
        """By the removals of earlier pipelines and the deeds of the writer, both oldest first."""
        last = next((deed for deed in reversed(deeds) if deed.is_forgetting), None)
        # The writer may have been forgotten alone, and its pipeline only later.
        is_older = last is not None and any(one.at >= last.at for one in forgettings)
        return cls(last is not None and (last.what == FORGET_PIPELINE or is_older))
