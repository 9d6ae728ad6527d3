"""A pipeline for commands that only need the control plane: declared by a file, or known there alone."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tidemark.cli.connections import look_up
from tidemark.connections import CONTROL, BadConnection, CassandraConnection
from tidemark.consensus import control_plane
from tidemark.delivery.operator.action_plan import NotPossible
from tidemark.delivery.operator.advice import Advice, without_file
from tidemark.delivery.state.known_pipelines import is_known, known_writers
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.status import PipelineStatus, read_advice, read_orphan_status, read_status
from tidemark.log.state.control import LogControl
from tidemark.pipeline.loader import UnknownPipeline, find_pipeline

if TYPE_CHECKING:
    from tidemark.consensus.objects import Consensus
    from tidemark.pipeline.model import Pipeline

NO_FILE = "no file"
"""How a pipeline is marked that no file declares."""


@dataclass(frozen=True)
class KnownPipeline:
    """One pipeline and the control plane."""

    name: str
    declared: "Pipeline | None"
    consensus: "Consensus"

    @cached_property
    def control(self) -> LogControl:
        """Its log in the control plane."""
        return LogControl(self.consensus, self.name)

    @cached_property
    def positions(self) -> Positions:
        """Its writers' state."""
        return Positions(self.consensus, self.name)

    @property
    def writers(self) -> list[str]:
        """The writers of the file; without a file, those that the control plane knows."""
        if self.declared is not None:
            return [writer.name for writer in self.declared.writers]
        return known_writers(self.control, self.positions)

    @property
    def mark(self) -> str:
        """What comes behind its name where no file declares it."""
        return "" if self.declared is not None else f" ({NO_FILE})"

    def chosen(self, writer: str | None) -> list[str]:
        """One writer, if there is such a one; all where none is named."""
        if writer is None:
            return self.writers
        if writer not in self.writers:
            there = ", ".join(self.writers) or "none"
            raise NotPossible(self.name, writer, f"there is no such writer; there is: {there}.")
        return [writer]

    def advice(self, writer: str) -> Advice:
        """What to do about a writer's gate, or why it cannot begin."""
        found = read_advice(self.positions, writer)
        if self.declared is None:
            return without_file(found, self.mark)
        if not found.where and (refusal := self._refusal(writer)):
            return replace(
                found, where=f"before it began: it is refused, and compaction does not wait for it. {refusal}"
            )
        return found

    def _refusal(self, writer: str) -> str | None:
        """Why a writer of the file that is not registered cannot begin; None where nothing is known."""
        status = next((one for one in self.status().writers if one.name == writer), None)
        return status.reason if status and not status.registered else None

    def status(self) -> PipelineStatus:
        """Its state."""
        if self.declared is not None:
            return read_status(self.declared, self.consensus)
        return read_orphan_status(self.name, self.consensus)


def look_at_control_plane() -> "Consensus":
    """The control plane of this installation; nothing is made by looking."""
    return control_plane.look_at_cluster(CassandraConnection.from_airflow(CONTROL, look_up(CONTROL)))


def open_known(name: str) -> KnownPipeline:
    """A pipeline that a file declares or that the control plane knows. Raises ``UnknownPipeline``."""
    try:
        return KnownPipeline(name, find_pipeline(name), look_at_control_plane())
    except UnknownPipeline as unknown:
        try:
            consensus = look_at_control_plane()
        except BadConnection:
            raise unknown from None
        if not is_known(consensus, name):
            raise
        return KnownPipeline(name, None, consensus)


def folders_of(pipelines: "Mapping[str, Pipeline]") -> dict[str, list[str]]:
    """The folders that declared pipelines use, by name."""
    return {name: [place for _, place in one.locations] for name, one in pipelines.items()}
