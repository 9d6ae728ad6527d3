"""The consumers of a writer's renditions, as outputs read them: position, gate, acknowledged ids, code."""

from dataclasses import dataclass

from tidemark.delivery.renditions.declared import code_now
from tidemark.delivery.state.positions import Positions
from tidemark.log.model.binding import NOTHING_YET
from tidemark.outputs.model.consumer_name import consumer_name
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import ConsumerState


@dataclass(frozen=True)
class WriterConsumers:
    """The consumers of one writer's renditions.

    Attributes:
        positions: The consumers of the pipeline.
        writer: The writer's name, without the number of a rendition.
    """

    positions: Positions
    writer: str

    def reached(self, number: int) -> int:
        """See ``Consumers.reached``."""
        found = self.positions.load(consumer_name(self.writer, number))
        return found.reached if found else NOTHING_YET

    def state(self, number: int) -> ConsumerState:
        """See ``Consumers.state``."""
        name, output = consumer_name(self.writer, number), self._outputs.require()
        code, found = code_now(output.rendition(number).settings), self.positions.load(name)
        if found is None:
            return ConsumerState(code=code)
        acknowledged = tuple(sorted(self.positions.unwritten(name)))
        return ConsumerState(found.position, found.reached, found.gate is None, acknowledged, code)

    @property
    def _outputs(self) -> OutputStore:
        return OutputStore(self.positions.consensus, self.positions.pipeline, self.writer)
