"""The consumer of a rendition, as outputs read it: today's state of the writer is that of its first one."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidemark.delivery.state.positions import Positions
from tidemark.log.model.binding import NOTHING_YET
from tidemark.outputs.state.progress import ConsumerState


@dataclass(frozen=True)
class WriterConsumers:
    """The consumers of one writer's renditions.

    Attributes:
        positions: The writers of the pipeline.
        writer: The writer's name.
        code: The digests of the modules that its transforms run now, by name.
    """

    positions: Positions
    writer: str
    code: Mapping[str, str]

    def reached(self, number: int) -> int:
        """See ``Consumers.reached``."""
        found = self.positions.load(self.writer) if number == 1 else None
        return found.reached if found else NOTHING_YET

    def state(self, number: int) -> ConsumerState:
        """See ``Consumers.state``."""
        found = self.positions.load(self.writer)
        if found is None or number != 1:
            return ConsumerState(code=self.code)
        acknowledged = tuple(sorted(self.positions.acknowledged(self.writer)))
        return ConsumerState(found.position, found.reached, found.gate is None, acknowledged, self.code)
