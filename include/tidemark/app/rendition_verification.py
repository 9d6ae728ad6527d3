"""Verifies a rendition of a writer: compares it with the active one, keeps the report, records the evidence.

Both consumers' leases are held meanwhile, so neither rendition moves. A caller that hands over directly
afterwards does so within ``renditions_held``: the handover then finds what was compared. A comparison that
finds unexplained differences takes earlier evidence back. No position changes here, and no row is written.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from uuid import uuid4

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.clock import Clock, wall_clock
from tidemark.consensus.lease_holder import holding
from tidemark.delivery.renditions.consumers import WriterConsumers
from tidemark.delivery.state.lease import WriterHold, take
from tidemark.faults import FaultPoint, reach
from tidemark.outputs.model.consumer_name import consumer_name
from tidemark.outputs.model.evidence import VerificationMode
from tidemark.outputs.model.handover import AlreadyActive
from tidemark.outputs.model.output import Output
from tidemark.outputs.state.lifecycle import record_verification, revoke
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import Consumers
from tidemark.outputs.state.reader_lease import held_reader
from tidemark.outputs.state.reader_store import ReaderStore
from tidemark.verification.renditions.comparison import Engine, Show
from tidemark.verification.renditions.errors import ActiveChanged, NotBuilt
from tidemark.verification.renditions.here import Here, silent
from tidemark.verification.renditions.record import keep
from tidemark.verification.renditions.report import RenditionReport
from tidemark.verification.renditions.verify import RenditionPair, compare_pair, refuse_unfit
from tidemark.writers.renditions import RenditionWriter, build_rendition, declared_writer


@dataclass(frozen=True)
class HeldRenditions:
    """A rendition and the active one, which no other process delivers to until the block ends.

    Attributes:
        opened: The pipeline.
        writer: The writer's name.
        number: The rendition.
        holds: The leases of both, by number.
        clock: The time of reports.
    """

    opened: OpenPipeline
    writer: str
    number: int
    holds: dict[int, WriterHold]
    clock: Clock = wall_clock

    def verify(
        self, mode: VerificationMode, *, session: Engine | None = None, show: Show = silent
    ) -> RenditionReport:
        """Compare both, keep the report, and record the evidence where nothing is left unexplained.

        ``session`` computes the pieces of the comparison, such as a ``SparkEngine``; None: this process does,
        and tells its progress to ``show``. Raises where they cannot be compared.
        """
        opened, pair = self.opened, self._pair()
        pair.refuse_unready()
        readers = ReaderStore(self.store, self.clock)
        who = f"verification of {self.writer} {self.number}"
        # What is compared is not removed meanwhile, see ``keep`` of collections.
        with held_reader(readers, readers.load().since, who) as held, opened.log.held(who) as log:
            report = compare_pair(
                pair,
                log,
                opened.positions,
                held.since,
                mode,
                declared_writer(opened.pipeline, self.writer).expect,
                session or Here(show),
                self.clock,
            )
            held.check()
        # A crash in between leaves no evidence: neither without its report, nor against it.
        if not report.is_clean:
            revoke(self.store, self.number)
        keep(opened.pipeline.log.path, report)
        reach(FaultPoint.RENDITION_REPORTED)
        if report.is_clean:
            record_verification(self.store, self.number, report.evidence())
        return report

    @property
    def store(self) -> OutputStore:
        """The writer's output."""
        return output_store(self.opened, self.writer)

    def _pair(self) -> RenditionPair:
        output = self.store.require()
        if output.active.number not in self.holds:
            raise ActiveChanged(output.pipeline, output.writer, self.number, output.active.number)
        numbers = self.number, output.active.number
        new, old = (self.built(output, number) for number in numbers)
        consumers = consumers_of(self.opened, self.writer)
        new_state, old_state = (self.holds[number].state for number in numbers)
        new_side, old_side = (consumers.state(number).side(number) for number in numbers)
        return RenditionPair(output, new, old, new_state, old_state, new_side, old_side)

    def built(self, output: Output, number: int) -> RenditionWriter:
        """A rendition with its writer."""
        place = self.opened.pipeline, self.opened.connections, self.writer
        return build_rendition(*place, output.rendition(number))


@contextmanager
def renditions_held(
    opened: OpenPipeline, writer: str, number: int, *, holder: str | None = None, clock: Clock = wall_clock
) -> Iterator[HeldRenditions]:
    """A rendition and the active one, with both leases until the block ends.

    Raises where the rendition cannot be verified in its state, and ``LeaseHeld`` where another process has
    one of them. A round of a follow is waited for.
    """
    refuse_unfit(output_store(opened, writer).require(), number)
    with both_held(opened, writer, number, holder=holder, clock=clock) as held:
        yield held


@contextmanager
def both_held(
    opened: OpenPipeline, writer: str, number: int, *, holder: str | None = None, clock: Clock = wall_clock
) -> Iterator[HeldRenditions]:
    """As ``renditions_held``, for a rendition in any state: a return of readers compares nothing."""
    who = holder or f"verification {uuid4().hex[:8]}"
    output = output_store(opened, writer).require()
    if output.active.number == number:
        raise AlreadyActive(output.pipeline, output.writer, number)
    holds: dict[int, WriterHold] = {}
    with ExitStack() as stack:
        for one in sorted({number, output.active.number}):  # in one order, so that two cannot wait crosswise
            name = consumer_name(writer, one)
            state = opened.positions.load(name)
            if state is None:
                raise NotBuilt(opened.pipeline.name, writer, one, name)
            holds[one] = stack.enter_context(holding(take(opened.positions, state, who, clock)))
        yield HeldRenditions(opened, writer, number, holds, clock)


def verify_rendition(
    opened: OpenPipeline,
    writer: str,
    number: int,
    mode: VerificationMode,
    *,
    session: Engine | None = None,
    show: Show = silent,
) -> RenditionReport:
    """Verify a rendition on its own. See ``HeldRenditions.verify``."""
    with renditions_held(opened, writer, number) as held:
        return held.verify(mode, session=session, show=show)


def output_store(opened: OpenPipeline, writer: str) -> OutputStore:
    """The output of a writer."""
    return OutputStore(opened.consensus, opened.pipeline.name, writer)


def consumers_of(opened: OpenPipeline, writer: str) -> Consumers:
    """The consumers of a writer's renditions, with the code that runs now."""
    return WriterConsumers(opened.positions, writer)
