"""The output of a writer, as a delivery to one of its renditions needs it: state, digests, frontier.

The control plane has an output in an object of its own. It is created after the writer is registered and
before anything is delivered; the next run creates it where a process died in between, and where an earlier
version registered the writer. Readers know nothing before that, and their own object begins with the first of
them, so no crash shows a reader half of it.

The digests of a binding are committed with the position that finishes it, for kinds whose output has times.
Here they are compared where a binding is computed again. This module writes no rows and moves no position.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from tidemark.clock import Clock
from tidemark.consensus.objects import Consensus
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.renditions.consumers import WriterConsumers
from tidemark.delivery.renditions.declared import code_now, first_settings, has_times
from tidemark.delivery.renditions.errors import (
    CompactedMeanwhile,
    OutputLeftOver,
    PlaceNotEmpty,
    RecomputedOtherwise,
    RenditionGivenUp,
    RenditionNotDeclared,
)
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import WriterState
from tidemark.delivery.writer import TargetIdentity, Writer, Written
from tidemark.log.model.binding import NOTHING_YET, Binding
from tidemark.outputs.errors import OutputMissing, Tainted
from tidemark.outputs.model.consumer_name import split_consumer
from tidemark.outputs.model.digest import ShardDigest, TimeDigests, differing_shards
from tidemark.outputs.model.evidence import Taint
from tidemark.outputs.model.lifecycle import RenditionProposal
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import RenditionState, Signature
from tidemark.outputs.settings import refuse_other_code
from tidemark.outputs.state.lifecycle import record_taint, revoke_outdated
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import Progress, advance_frontier

FIRST = 1
"""The number of a writer's first rendition."""
GIVEN_UP = frozenset({RenditionState.RETIRING, RenditionState.DROPPED, RenditionState.ABANDONED})
"""The states in which a rendition gets nothing any more."""


@dataclass(frozen=True)
class WriterOutput:
    """The output of one writer, for a delivery to one of its renditions.

    Attributes:
        name: The writer's name, without the number of a rendition.
        number: The rendition that is delivered to.
        writer: The writer of this rendition; its name is the consumer's.
        log: The published log.
        positions: The consumers of the pipeline.
        clock: The time of signatures.
    """

    name: str
    number: int
    writer: Writer
    log: PublishedLog
    positions: Positions
    clock: Clock

    @classmethod
    def of(cls, writer: Writer, log: PublishedLog, positions: Positions, clock: Clock) -> "WriterOutput":
        """The output that a writer belongs to, by its consumer's name."""
        name, number = split_consumer(writer.name)
        return cls(name, number or FIRST, writer, log, positions, clock)

    @property
    def store(self) -> OutputStore:
        """The output in the control plane."""
        return OutputStore(self.positions.consensus, self.positions.pipeline, self.name)

    @property
    def is_timed(self) -> bool:
        """Whether it has times that readers read, and therefore digests."""
        return self.writer.timed_output() is not None

    def ensure(self, state: WriterState) -> Output:
        """The output; creates it with its first rendition, of which ``state`` is the consumer, where the
        writer has none yet."""
        found = self.store.load()
        if found is not None:
            return found
        if self.number != FIRST:
            return self.store.require()
        signed = Signature(f"registration of {self.name}", "the writer was registered", self.clock())
        first = first_settings(self.writer, state.shape)
        code = code_now(first.settings)
        return self.store.create(RenditionProposal(first.settings, first.place, self.since(), signed, code))

    def refuse_undeclared(self, output: Output | None) -> None:
        """Refuse to register the consumer of a rendition that the output does not have, or no longer as it
        was declared.

        A first rendition may have no output yet. One that is there is a forgotten writer's: it is removed,
        except where readers may have read its times. ``output`` was read before the consumer was found not to
        be registered: so it is none that a faster process has just made.
        """
        pipeline = self.positions.pipeline
        if self.number == FIRST:
            if output is not None:
                if self.is_timed or has_times(output):
                    raise OutputLeftOver(pipeline, self.name, output.renditions[-1].place)
                self.store.remove(output)
            return
        found = [one for one in output.renditions if one.number == self.number] if output else []
        if not found:
            raise RenditionNotDeclared(pipeline, self.name, self.number)
        (rendition,) = found
        if rendition.state in GIVEN_UP:
            raise RenditionGivenUp(pipeline, self.name, self.number, rendition.state)
        if rendition.since < (now := self.since()):
            raise CompactedMeanwhile(pipeline, self.name, self.number, rendition.since, now)

    def refuse_place_in_use(self, identity: TargetIdentity | None, bound: Writer) -> None:
        """Raise ``PlaceNotEmpty`` where a new rendition would mix with what is at its place already."""
        problem = bound.refuses_rendition()
        if problem is None and identity is not None:
            used = [part for part, last_id in bound.reached().items() if last_id > NOTHING_YET]
            problem = f"{identity.what} has messages already" if used else None
        if problem is not None:
            raise PlaceNotEmpty(self.positions.pipeline, self.name, self.number, problem)

    def refuse_unusable(self, state: WriterState) -> None:
        """Raise ``Tainted``, ``CodeDiffers`` or ``RenditionGivenUp`` where nothing may be delivered to the
        rendition."""
        output = self.ensure(state)
        rendition = output.rendition(self.number)
        if rendition.state in GIVEN_UP:
            raise RenditionGivenUp(output.pipeline, output.writer, self.number, rendition.state)
        output.refuse_tainted(rendition)
        refuse_other_code(output.pipeline, output.writer, rendition, code_now(rendition.settings))

    def is_out_of_use(self, state: WriterState) -> bool:
        """Whether nothing is delivered to the rendition any more, of which ``state`` is the consumer.

        Creates the output of a writer that an earlier version registered.
        """
        return self.ensure(state).rendition(self.number).state in GIVEN_UP

    def is_given_up(self) -> bool:
        """Whether the rendition was given up or taken out of use since it was last looked at."""
        output = self.store.load()
        return output is not None and output.rendition(self.number).state in GIVEN_UP

    def committed(self, binding: Binding, reached: int) -> TimeDigests | None:
        """The committed digests of a binding; None where there are none. Those of a binding beyond
        ``reached`` are not looked for."""
        if not self.is_timed or binding.end > reached:
            return None
        body = self.positions.digests(self.writer.name, binding.t)
        return None if body is None else TimeDigests.from_json(body)

    def computed(self, binding: Binding, written: Written) -> TimeDigests:
        """The digests of what a binding makes."""
        timed = self.writer.timed_output()
        nothing = (ShardDigest(),) * (timed.shards if timed else 0)
        return TimeDigests(binding.t, written.digests or nothing)

    def row(self, binding: Binding, written: Written) -> Mapping[str, str]:
        """The row to commit with the position that finishes a binding; empty for kinds without times."""
        if not self.is_timed:
            return {}
        return self.positions.digests_row(binding.t, self.computed(binding, written).to_json())

    def refuse_other(self, committed: TimeDigests, computed: TimeDigests) -> None:
        """Freeze the rendition and raise ``RecomputedOtherwise`` where the digests differ."""
        output = self.store.require()
        differing = differing_shards(output, self.number, committed, computed)
        if not differing:
            return
        shard, rendition = differing[0], output.rendition(self.number)
        digests = str(committed.shards[shard]), str(computed.shards[shard])
        code = dict(rendition.code), dict(code_now(rendition.settings))
        taint = Taint(committed.t, shard, *digests, *code)
        record_taint(self.store, self.number, taint)
        raise RecomputedOtherwise(output.pipeline, output.writer, self.number, taint)

    def advance(self) -> int:
        """Let readers read everything that is finished, and withdraw verifications that are outdated; returns
        the frontier."""
        consumers = WriterConsumers(self.positions, self.name)
        output = advance_frontier(self.store, Progress(self.log.control, self.log.bindings, consumers))
        _revoke(self.store, output, consumers)
        return output.frontier

    def since(self) -> int:
        """The first time that a rendition can answer for that is built from this log: 0, or where compaction
        ended."""
        below = self.log.manifest.compacted_below
        if below == 0:
            return 0
        whole = next(self.log.bindings.after(below - 1), None)
        return whole.t if whole else self.log.control.bindings_head().upper


def advance_output(writer: Writer, log: PublishedLog, positions: Positions, clock: Clock) -> None:
    """Advance the frontier of a registered writer's output, where it has one yet."""
    with suppress(OutputMissing):
        WriterOutput.of(writer, log, positions, clock).advance()


def forget_output(consensus: Consensus, pipeline: str, writer: str) -> None:
    """Remove the output of a writer that is forgotten, so that its name begins anew.

    That of a kind with times stays, because readers may have read them.
    """
    store = OutputStore(consensus, pipeline, writer)
    if (output := store.load()) is not None and not has_times(output):
        store.remove(output)


def revoke_verifications(positions: Positions, consumer: str) -> None:
    """Withdraw the verifications of a writer's renditions that no longer hold."""
    writer = split_consumer(consumer)[0]
    store = OutputStore(positions.consensus, positions.pipeline, writer)
    if (output := store.load()) is not None:
        _revoke(store, output, WriterConsumers(positions, writer))


def _revoke(store: OutputStore, output: Output, consumers: WriterConsumers) -> None:
    if any(one.state is RenditionState.VERIFIED for one in output.renditions):
        revoke_outdated(store, consumers)


UNUSABLE = (Tainted, RecomputedOtherwise)
"""The errors of a rendition that stays frozen."""
