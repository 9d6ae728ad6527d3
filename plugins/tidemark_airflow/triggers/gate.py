"""Waiting until a writer's gate is open."""

from typing import TYPE_CHECKING

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.triggers.writer import WriterTrigger

if TYPE_CHECKING:
    from tidemark.app.open_pipeline import OpenPipeline


def gate_advice(opened: "OpenPipeline", writer: str) -> str:
    """What an operator should know about a closed gate, in one line."""
    return f"{opened.advice(writer).sentence} (see also the runs of {opened.pipeline.name}.resume)"


class GateTrigger(WriterTrigger):
    """Fires when a writer's gate is open."""

    def _reason(self) -> str | None:
        try:
            opened = open_pipeline(self.pipeline)
            return gate_advice(opened, self.writer) if self.writer in opened.stopped() else None
        except Exception as error:  # a restart of Cassandra must not end the wait for an operator
            said = f"{type(error).__name__}: {error}"
            return f"{self.pipeline}/{self.writer}: the control plane does not answer: {said}"
