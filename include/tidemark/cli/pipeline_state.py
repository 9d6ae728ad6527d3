"""A pipeline's state in the control plane, for commands that need neither its log nor its connections.

The pipeline is declared by a file, or the control plane alone still has it. Nothing is created by reading.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tidemark.cli.connections import look_up
from tidemark.connections import CONTROL, BadConnection, CassandraConnection
from tidemark.consensus import control_plane
from tidemark.delivery.operator.action_plan import NotPossible
from tidemark.delivery.operator.advice import Advice, without_file
from tidemark.delivery.renditions.selection import resolved_name
from tidemark.delivery.state.known_pipelines import is_known, known_writers
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.status import PipelineStatus, read_advice, read_orphan_status, read_status
from tidemark.log.state.control import LogControl
from tidemark.outputs.model.consumer_name import split_consumer
from tidemark.pipeline.loader import UnknownPipeline, find_pipeline

if TYPE_CHECKING:
    from tidemark.consensus.objects import Consensus
    from tidemark.pipeline.model import Pipeline

NO_FILE = "no file"
"""The mark of a pipeline that no file declares."""


@dataclass(frozen=True)
class PipelineState:
    """One pipeline in the control plane, with its declaration where a file has one."""

    name: str
    declared: "Pipeline | None"
    consensus: "Consensus"

    @cached_property
    def control(self) -> LogControl:
        """The pipeline's log in the control plane."""
        return LogControl(self.consensus, self.name)

    @cached_property
    def positions(self) -> Positions:
        """The state of the pipeline's writers."""
        return Positions(self.consensus, self.name)

    @property
    def writers(self) -> list[str]:
        """The writers of the file; without a file, those that the control plane knows."""
        if self.declared is not None:
            return [writer.name for writer in self.declared.writers]
        return known_writers(self.control, self.positions)

    @property
    def mark(self) -> str:
        """The suffix of its name in output: empty for a declared pipeline."""
        return "" if self.declared is not None else f" ({NO_FILE})"

    def chosen(self, writer: str | None) -> list[str]:
        """The named writer, which must exist; all writers for None."""
        if writer is None:
            return self.writers
        if split_consumer(writer)[0] not in self.writers and writer not in self.writers:
            there = ", ".join(self.writers) or "none"
            raise NotPossible(self.name, writer, f"there is no such writer; there is: {there}.")
        return [writer]

    def consumer(self, name: str) -> str:
        """The name of the consumer that an operator means: of the active rendition, or of a numbered one."""
        return resolved_name(self.positions, name)

    def advice(self, writer: str) -> Advice:
        """What an operator can do about a writer's gate, or why the writer cannot begin."""
        found = read_advice(self.positions, self.consumer(writer))
        if self.declared is None:
            return without_file(found, self.mark)
        if not found.where and (refusal := self._refusal(writer)):
            return replace(
                found, where=f"before it began: it is refused, and compaction does not wait for it. {refusal}"
            )
        return found

    def _refusal(self, writer: str) -> str | None:
        """Why a declared writer that is not registered cannot begin; None where no reason is known."""
        status = next((one for one in self.status().writers if one.name == writer), None)
        return status.reason if status and not status.registered else None

    def status(self) -> PipelineStatus:
        """The state of the log and of every writer."""
        if self.declared is not None:
            return read_status(self.declared, self.consensus)
        return read_orphan_status(self.name, self.consensus)


def open_control_plane() -> "Consensus":
    """The control plane of this installation; creates nothing."""
    return control_plane.look_at_cluster(CassandraConnection.from_airflow(CONTROL, look_up(CONTROL)))


def open_pipeline_state(name: str) -> PipelineState:
    """A pipeline that a file declares or that the control plane knows. Raises ``UnknownPipeline``."""
    try:
        return PipelineState(name, find_pipeline(name), open_control_plane())
    except UnknownPipeline as unknown:
        try:
            consensus = open_control_plane()
        except BadConnection:
            raise unknown from None
        if not is_known(consensus, name):
            raise
        return PipelineState(name, None, consensus)


def folders_of(pipelines: "Mapping[str, Pipeline]") -> dict[str, list[str]]:
    """The folders that declared pipelines use, by name."""
    return {name: [place for _, place in one.locations] for name, one in pipelines.items()}
