"""The output of a writer whose times readers read: its first rendition, its digests, and its frontier.

The control plane has it in an object of its own. It is created after the writer is registered and before
anything is delivered; the next run creates it where a process died in between. Readers know nothing before
that, and their own object begins with the first of them, so no crash shows a reader half of it.

The digests of a binding are committed with the position that finishes it. Here they are compared where a
binding is computed again. This module writes no rows and moves no position.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tidemark.clock import Clock
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.renditions.consumers import WriterConsumers
from tidemark.delivery.renditions.errors import OutputLeftOver, RecomputedOtherwise
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.writer import TimedOutput, Writer, Written
from tidemark.log.model.binding import Binding
from tidemark.outputs.errors import Tainted
from tidemark.outputs.model.digest import ShardDigest, TimeDigests, differing_shards
from tidemark.outputs.model.evidence import Taint
from tidemark.outputs.model.lifecycle import RenditionProposal
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import Signature
from tidemark.outputs.settings import refuse_other_code
from tidemark.outputs.state.lifecycle import record_taint
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import Progress, advance_frontier

FIRST = 1
"""The number of the rendition that a writer delivers to."""


@dataclass(frozen=True)
class WriterOutput:
    """The output of one writer.

    Attributes:
        writer: The writer's name.
        declared: The output as its writer declares it now.
        log: The published log.
        positions: The writers of the pipeline.
        clock: The time of signatures.
    """

    writer: str
    declared: TimedOutput
    log: PublishedLog
    positions: Positions
    clock: Clock

    @classmethod
    def of(
        cls, writer: Writer, log: PublishedLog, positions: Positions, clock: Clock
    ) -> "WriterOutput | None":
        """The output of a writer; None for kinds whose output has no times."""
        declared = writer.timed_output()
        return cls(writer.name, declared, log, positions, clock) if declared else None

    @property
    def store(self) -> OutputStore:
        """The output in the control plane."""
        return OutputStore(self.positions.consensus, self.positions.pipeline, self.writer)

    def ensure(self) -> Output:
        """The output; creates it with its first rendition where the writer has none yet."""
        found = self.store.load()
        if found is not None:
            return found
        signed = Signature(f"registration of {self.writer}", "the writer was registered", self.clock())
        declared = self.declared
        proposal = RenditionProposal(
            declared.settings, declared.place, self._since(), signed, dict(declared.code)
        )
        return self.store.create(proposal)

    def refuse_left_over(self) -> None:
        """Raise ``OutputLeftOver`` where there is an output although the writer is not registered."""
        found = self.store.load()
        if found is not None:
            place = found.renditions[-1].place
            raise OutputLeftOver(self.positions.pipeline, self.writer, place)

    def refuse_unusable(self) -> None:
        """Raise ``Tainted`` or ``CodeDiffers`` where nothing may be delivered to the rendition."""
        output = self.ensure()
        output.refuse_tainted(output.rendition(FIRST))
        refuse_other_code(output.pipeline, output.writer, output.rendition(FIRST), self.declared.code)

    def committed(self, binding: Binding, reached: int) -> TimeDigests | None:
        """The committed digests of a binding; None where there are none. Those of a binding beyond
        ``reached`` are not looked for."""
        if binding.end > reached:
            return None
        body = self.positions.digests(self.writer, binding.t)
        return None if body is None else TimeDigests.from_json(body)

    def computed(self, binding: Binding, written: Written) -> TimeDigests:
        """The digests of what a binding makes."""
        nothing = (ShardDigest(),) * self.declared.shards
        return TimeDigests(binding.t, written.digests or nothing)

    def row(self, binding: Binding, written: Written) -> Mapping[str, str]:
        """The row to commit with the position that finishes a binding."""
        return self.positions.digests_row(binding.t, self.computed(binding, written).to_json())

    def refuse_other(self, committed: TimeDigests, computed: TimeDigests) -> None:
        """Freeze the rendition and raise ``RecomputedOtherwise`` where the digests differ."""
        output = self.store.require()
        differing = differing_shards(output, FIRST, committed, computed)
        if not differing:
            return
        shard, rendition = differing[0], output.rendition(FIRST)
        digests = str(committed.shards[shard]), str(computed.shards[shard])
        taint = Taint(committed.t, shard, *digests, dict(rendition.code), dict(self.declared.code))
        record_taint(self.store, FIRST, taint)
        raise RecomputedOtherwise(output.pipeline, output.writer, FIRST, taint)

    def advance(self) -> int:
        """Let readers read everything that is finished; returns the frontier."""
        consumers = WriterConsumers(self.positions, self.writer, self.declared.code)
        progress = Progress(self.log.control, self.log.bindings, consumers)
        return advance_frontier(self.store, progress).frontier

    def _since(self) -> int:
        """The first time that the rendition can answer for: 0, or where compaction ended."""
        below = self.log.manifest.compacted_below
        if below == 0:
            return 0
        whole = next(self.log.bindings.after(below - 1), None)
        return whole.t if whole else self.log.control.bindings_head().upper


def advance_output(writer: Writer, log: PublishedLog, positions: Positions, clock: Clock) -> None:
    """Advance the frontier of a registered writer's output, where its kind has one."""
    output = WriterOutput.of(writer, log, positions, clock)
    if output is not None and output.store.load() is not None:
        output.advance()


UNUSABLE = (Tainted, RecomputedOtherwise)
"""The errors of a rendition that stays frozen."""
