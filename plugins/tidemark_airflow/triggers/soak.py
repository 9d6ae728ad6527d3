"""Waiting until a rendition that readers have left is not needed for a return any more."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tidemark_airflow.connections import open_pipeline
from tidemark_airflow.triggers.writer import WriterTrigger

if TYPE_CHECKING:
    from tidemark.app.renditions.opened import WriterRenditions

EVERY = 30.0
"""Seconds between two checks."""


class SoakTrigger(WriterTrigger):
    """Fires when the time to return to the rendition ``previous`` is over, or when readers have returned to
    it.

    That time is read anew at every check. Readers that went on to a later rendition than ``number`` end
    nothing, because they may still return to ``previous``. A trigger that an earlier version has stored knows
    its time ``until`` (µs) instead of ``previous``.
    """

    def __init__(
        self,
        pipeline: str,
        writer: str,
        number: int,
        until: int = 0,
        every: float = EVERY,
        previous: int | None = None,
    ) -> None:
        super().__init__(pipeline, writer, every)
        self.number, self.until, self.previous = number, until, previous

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """See ``BaseTrigger.serialize``."""
        path, keys = super().serialize()
        further: Mapping[str, Any] = {"number": self.number, "until": self.until}
        return path, {**keys, **further, **({} if self.previous is None else {"previous": self.previous})}

    def _reason(self) -> str | None:
        try:
            return self.why()
        except Exception as error:  # a restart of Cassandra must not end the wait
            return f"{self.pipeline}/{self.writer}: {type(error).__name__}: {error}"

    def why(self) -> str | None:
        """Why to go on waiting, as a sentence without a time that passes; None where there is no reason."""
        from tidemark.app.renditions.opened import WriterRenditions
        from tidemark.clock import wall_clock

        of = WriterRenditions(open_pipeline(self.pipeline), self.writer)
        active, until = of.output.active.number, self._until(of)
        if until is None or wall_clock() >= until:
            return None
        over = f"{datetime.fromtimestamp(until / 1e6, UTC):%Y-%m-%d %H:%M:%S} UTC"
        way = f"tidemark renditions rollback {self.pipeline} {self.writer}"
        return (
            f"{self.pipeline}/{self.writer}: readers use rendition {active}; the earlier one is kept for a "
            f"return until {over}: {way if active == self.number else f'{way} {self.previous}'}"
        )

    def _until(self, of: "WriterRenditions") -> int | None:
        """The end of the time to return; None where there is none."""
        from tidemark.delivery.renditions.selection import soak_until

        output = of.output
        if self.previous is None:
            return self.until if output.active.number == self.number else None
        declared = next((one for one in of.opened.pipeline.writers if one.name == self.writer), None)
        return soak_until(output, self.previous, declared) if declared else None
