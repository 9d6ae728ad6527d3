"""The consumer of a rendition, as outputs read it: today's state of the writer is that of its first one."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidemark.delivery.state.positions import Positions
from tidemark.log.model.binding import NOTHING_YET
from tidemark.outputs.model.consumer_name import consumer_name
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
        found = self.positions.load(consumer_name(self.writer, number))
        return found.reached if found else NOTHING_YET

    def state(self, number: int) -> ConsumerState:
        """See ``Consumers.state``."""
        name = consumer_name(self.writer, number)
        found = self.positions.load(name)
        if found is None:
            return ConsumerState(code=self.code)
        acknowledged = tuple(sorted(self.positions.acknowledged(name)))
        return ConsumerState(found.position, found.reached, found.gate is None, acknowledged, self.code)
