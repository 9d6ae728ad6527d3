"""Waiting until a rendition that readers have left is not needed for a return any more."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.triggers.writer import WriterTrigger

EVERY = 30.0
"""Seconds between two checks."""


class SoakTrigger(WriterTrigger):
    """Fires when the time is over, or when readers use another rendition than ``number`` again."""

    def __init__(self, pipeline: str, writer: str, number: int, until: int, every: float = EVERY) -> None:
        super().__init__(pipeline, writer, every)
        self.number, self.until = number, until
        """``until`` is a time in µs."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See ``BaseTrigger.serialize``."""
        path, keys = super().serialize()
        further: Mapping[str, Any] = {"number": self.number, "until": self.until}
        return path, {**keys, **further}

    def _reason(self) -> str | None:
        try:
            return why_to_soak(self.pipeline, self.writer, self.number, self.until)
        except Exception as error:  # a restart of Cassandra must not end the wait
            return f"{self.pipeline}/{self.writer}: {type(error).__name__}: {error}"


def why_to_soak(pipeline: str, writer: str, number: int, until: int) -> str | None:
    """Why to go on waiting, as a sentence without a time that passes; None where there is no reason."""
    from tidemark.app.renditions.opened import WriterRenditions
    from tidemark.clock import wall_clock

    active = WriterRenditions(open_pipeline(pipeline), writer).output.active.number
    if active != number or wall_clock() >= until:
        return None
    over = f"{datetime.fromtimestamp(until / 1e6, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return (
        f"{pipeline}/{writer}: readers use rendition {number}; the earlier one is kept for a return until "
        f"{over}: tidemark renditions rollback {pipeline} {writer}"
    )
