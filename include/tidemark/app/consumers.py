"""The consumers that a run delivers to: every rendition of the pipeline's writers that is delivered to, each
with its own writer, the active ones first.

A rendition that is being built is left to its build, ``deliver --consumer``, while it is further behind than
one run delivers: so no run is held up by a build. A rendition that cannot be built here fails by itself.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from tidemark.clock import Clock, wall_clock
from tidemark.connections import Connections
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.renditions.declared import changed_in_file
from tidemark.delivery.renditions.output import FIRST, WriterOutput
from tidemark.delivery.renditions.selection import ConsumerChoice, consumers_of_all, outputs_of
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.registration import Start, start_of
from tidemark.delivery.writer import Writer
from tidemark.errors import TidemarkError
from tidemark.log.model.binding import NOTHING_YET
from tidemark.outputs.model.consumer_name import split_consumer
from tidemark.outputs.model.output import Output
from tidemark.outputs.settings import SettingChange
from tidemark.pipeline.model import Pipeline, WriterStart
from tidemark.writers.renditions import RenditionWriter, build_declared, build_rendition


@dataclass(frozen=True)
class DeliveredConsumer:
    """One consumer that a run delivers to.

    Attributes:
        choice: Its rendition.
        built: Its writer; None where that cannot be made.
        failure: Why it cannot be made.
    """

    choice: ConsumerChoice
    built: RenditionWriter | None = None
    failure: TidemarkError | None = None

    @property
    def name(self) -> str:
        """The consumer's name."""
        return self.choice.name

    @property
    def shown(self) -> str:
        """Its name in summaries and for commands: the writer's for the active one, through every handover."""
        name = self.choice.declared.name
        return name if self.is_active else f"{name}.r{self.choice.number}"

    @property
    def is_active(self) -> bool:
        """Whether readers use its rendition."""
        return self.choice.is_active

    @property
    def writer(self) -> Writer:
        """Its writer; raises why there is none."""
        if self.built is None:
            raise self.failure or LookupError(self.name)
        return self.built.writer


@dataclass
class RunConsumers:
    """Chooses the consumers of runs, and keeps the writers that it has built."""

    pipeline: Pipeline
    connections: Connections
    positions: Positions
    clock: Clock = wall_clock
    _built: dict[tuple[str, str, str], RenditionWriter] = field(default_factory=dict)
    _outputs: dict[str, Output | None] = field(default_factory=dict)

    def choose(self, log: PublishedLog) -> list[DeliveredConsumer]:
        """The consumers that a run delivers to now, the active ones first."""
        found = self._found(log)
        return [self._consumer(one) for one in found if not self.is_left_to_build(one, log)]

    def one(self, name: str, log: PublishedLog) -> DeliveredConsumer | None:
        """The consumer that an operator means, whatever it lacks; None where it is not delivered to.

        ``accounts`` is the active one, ``accounts.r1`` the first.
        """
        writer, number = split_consumer(name)
        for one in self._found(log):
            is_meant = one.is_active if number is None else one.number == number
            if one.declared.name == writer and is_meant:
                return self._consumer(one)
        return None

    def _found(self, log: PublishedLog) -> list[ConsumerChoice]:
        declared = self.pipeline.writers
        self._outputs = outputs_of(self.positions.consensus, self.pipeline.name, declared)
        self._adopt_earlier(log)
        return consumers_of_all(self._outputs, declared, self.clock())

    def is_left_to_build(self, choice: ConsumerChoice, log: PublishedLog) -> bool:
        """Whether it is being built, and lacks more than one run delivers."""
        if not choice.is_building:
            return False
        state = self.positions.load(choice.name)
        position = state.position if state else NOTHING_YET
        return log.end - position > self.pipeline.limits.max_records_per_run

    def start(self, consumer: DeliveredConsumer, log: PublishedLog) -> Start:
        """Where a consumer begins that is not registered yet. A later rendition of a writer that began at the
        end of the log begins where the first one did: what is before that is not comparable."""
        declared = consumer.built.declared if consumer.built else consumer.choice.declared
        if consumer.choice.number == FIRST or declared.start is not WriterStart.LATEST:
            return start_of(declared, log.end)
        first = self.positions.load(declared.name)
        return first.since - 1 if first and first.since is not None else NOTHING_YET

    def _adopt_earlier(self, log: PublishedLog) -> None:
        """Give the writers that an earlier version registered their outputs, before any of them is built:
        its settings then are those that it was registered with."""
        for name in [name for name, output in self._outputs.items() if output is None]:
            state = self.positions.load(name)
            if state is not None and state.ended is None:
                with suppress(TidemarkError):  # its own delivery meets the error again, and fails alone
                    writer = build_declared(self.pipeline, self.connections, name).writer
                    output = WriterOutput.of(writer, log, self.positions, self.clock)
                    self._outputs[name] = output.ensure(state)

    def differences(self) -> dict[str, list[SettingChange]]:
        """The settings of the file that differ from the active rendition's, by writer, as they were when the
        consumers were last chosen; writers that differ in nothing are left out."""
        return differences_of(self.pipeline, self._outputs)

    def _consumer(self, choice: ConsumerChoice) -> DeliveredConsumer:
        rendition = choice.rendition
        digest, place = (rendition.settings_digest, rendition.place) if rendition else ("", "")
        key = choice.name, digest, place
        try:
            if key not in self._built:
                writer = choice.declared.name
                self._built[key] = (
                    build_rendition(self.pipeline, self.connections, writer, rendition)
                    if rendition
                    else build_declared(self.pipeline, self.connections, writer)
                )
        except TidemarkError as error:
            return DeliveredConsumer(choice, failure=error)
        return DeliveredConsumer(choice, self._built[key])


def differences_of(
    pipeline: Pipeline, outputs: Mapping[str, Output | None]
) -> dict[str, list[SettingChange]]:
    """The settings of the file that differ from the active renditions', by writer."""
    found = {}
    for declared in pipeline.writers:
        output = outputs.get(declared.name)
        if output and (changed := changed_in_file(pipeline, declared, output.active)):
            found[declared.name] = changed
    return found


def difference_lines(pipeline: str, differences: Mapping[str, Sequence[SettingChange]]) -> list[str]:
    """What a run says about settings that differ, one line for each writer."""
    return [
        f"{pipeline}/{writer}: the file differs from the active rendition, which goes on with its own "
        f"settings ({'; '.join(map(str, changed))}). Build the next one: tidemark renditions build "
        f"{pipeline} {writer}"
        for writer, changed in differences.items()
    ]
