"""One writer's output with everything around it, in memory: bindings, consumers, places and the two objects.

Every method is one durable step, or reads only. A crash between two steps is a history in which the second
one comes late, more than once, or never. What a step is based on may be old: callers keep what they read.
"""

from bisect import bisect_right
from dataclasses import dataclass, field

from tests.support.output_samples import PIPELINE, WRITER, RowsInMemory, given_output, given_readers, signed

from tidemark.log.model.binding import NOTHING_YET, Binding, Slice, next_time
from tidemark.outputs.model.capability import Readers
from tidemark.outputs.model.digest import ShardDigest, TimeDigests, differing_shards, shard_of
from tidemark.outputs.model.evidence import ComparedSide, Taint, VerificationEvidence, VerificationMode
from tidemark.outputs.model.lifecycle import RenditionProposal, declare, mark_tainted
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import RenditionState, Signature
from tidemark.outputs.model.retention import may_drop_place
from tidemark.outputs.model.rows import (
    changed_rows,
    output_from_rows,
    output_rows,
    reader_rows,
    readers_from_rows,
)
from tidemark.outputs.model.updates import RowUpdate, difference
from tidemark.outputs.model.upper import upper_of

SHARDS = 2
UNDELIVERED = {
    RenditionState.TAINTED,
    RenditionState.ABANDONED,
    RenditionState.RETIRING,
    RenditionState.DROPPED,
}

OneMessage = tuple[str, int | None]
"""Key and value; no value deletes the key."""


@dataclass
class OutputConsumer:
    """What delivery keeps for one rendition."""

    since: int
    position: int = NOTHING_YET
    reached: int = NOTHING_YET
    is_gate_open: bool = True
    digests: dict[int, TimeDigests] = field(default_factory=dict)


class OutputWorld:
    """See the module. Renditions differ in how they shape the rows: by their number modulo 3."""

    def __init__(self) -> None:
        self.bindings: list[Binding] = []
        self.messages: dict[int, list[OneMessage]] = {}
        self.bindings_upper = 0
        self.rows = RowsInMemory({1: []})
        self.consumers = {1: OutputConsumer(0)}
        self.steps = 0
        self._truths: dict[tuple[int, int], dict[tuple[str, int], int]] = {}
        self.output = given_output()
        self.readers = given_readers()

    def commit_output(self, output: Output) -> None:
        """Store an output as its rows, and read them back."""
        before = output_rows(self.output)
        if puts := changed_rows(before, output_rows(output)):
            self.output = output_from_rows(PIPELINE, WRITER, {**before, **puts})

    def commit_readers(self, readers: Readers) -> None:
        """Store the readers as their rows, and read them back."""
        before = reader_rows(self.readers)
        puts = changed_rows(before, reader_rows(readers, before))
        self.readers = readers_from_rows(PIPELINE, WRITER, {**before, **puts})

    def signature(self) -> Signature:
        """A new one each time: another operator's action."""
        self.steps += 1
        return signed(1_000 + self.steps)

    # The source

    def bind(self, messages: list[OneMessage], gap: int) -> None:
        previous = self.bindings[-1] if self.bindings else None
        t = next_time(self.bindings_upper + gap, self.bindings_upper, previous)
        base = previous.end + 1 if previous else 0
        self.bindings.append(Binding(t, base, (Slice("p", 0, base, base + len(messages)),), f"run at {t}"))
        self.messages[t] = messages
        self.bindings_upper = t + 1

    def bind_nothing(self, gap: int) -> None:
        self.bindings_upper += gap

    def truth(self, number: int, at: int) -> dict[tuple[str, int], int]:
        """The state that a rendition must have at a time: computed from the messages alone."""
        bound = bisect_right(self.bindings, at, key=lambda one: one.t)
        if (number % 3, bound) not in self._truths:
            found: dict[str, int] = {}
            for binding in self.bindings[:bound]:
                for key, value in self.messages[binding.t]:
                    if value is None or (number % 3 == 2 and key == "c"):
                        found.pop(key, None)
                    else:
                        found[key] = value + (number % 3 == 0)
            self._truths[number % 3, bound] = dict.fromkeys(found.items(), 1)
        return self._truths[number % 3, bound]

    # Delivery

    def next_binding(self, number: int) -> Binding | None:
        position = self.consumers[number].position
        return next((one for one in self.bindings if one.end > position), None)

    def is_delivered_to(self, number: int) -> bool:
        return self.output.rendition(number).state not in UNDELIVERED

    def computed(self, number: int, t: int) -> list[RowUpdate]:
        """A rendition's updates at a binding time; what is older than its beginning is there from then on."""
        since = self.consumers[number].since
        if t < since:
            return []
        before = {} if t == since else self.truth(number, t - 1)
        return difference(t, before, self.truth(number, t))

    def write(self, number: int, t: int, count: int | None = None) -> None:
        """Write the first ``count`` rows of a time, or all; writing again changes nothing."""
        there = self.rows.held[number]
        there += [one for one in self.computed(number, t)[:count] if one not in there]

    def digests(self, number: int, t: int, *, is_other_code: bool = False) -> TimeDigests:
        rows = [repr(one).encode() for one in self.computed(number, t)]
        rows += [b"another row"] if is_other_code else []
        shards = ([one for one in rows if shard_of(one, SHARDS) == shard] for shard in range(SHARDS))
        return TimeDigests(t, tuple(map(ShardDigest.of, shards)))

    def finish(self, number: int, binding: Binding) -> None:
        """One commit: the digests of a binding and the position."""
        consumer = self.consumers[number]
        digests = self.digests(number, binding.t)
        assert consumer.digests.setdefault(binding.t, digests) == digests
        consumer.position = binding.end
        consumer.reached = max(consumer.reached, binding.end)

    def redeliver(self, number: int, t: int, *, is_other_code: bool) -> None:
        """Compute a finished time again: write the same rows, or taint and write nothing."""
        committed = self.consumers[number].digests.get(t)
        found = self.digests(number, t, is_other_code=is_other_code)
        if differing := differing_shards(self.output, number, committed, found):
            assert committed is not None
            first = differing[0]
            pair = str(committed.shards[first]), str(found.shards[first])
            self.commit_output(mark_tainted(self.output, number, Taint(t, first, *pair, {}, {"m": "other"})))
        else:
            self.write(number, t)

    def upper(self, number: int, bindings_upper: int | None = None) -> int:
        """How far a rendition has come; ``bindings_upper`` was read some time before."""
        early = self.bindings_upper if bindings_upper is None else bindings_upper
        return upper_of(early, self.consumers[number].reached, self.bindings)

    # Renditions

    def declare(self, since: int) -> int:
        output = self.output
        number = output.next_number
        made = RenditionProposal({"number": number}, f"accounts_r{number}", since, self.signature())
        self.commit_output(declare(output, made))
        self.rows.held[number] = []
        self.consumers[number] = OutputConsumer(since)
        return number

    def side(self, number: int) -> ComparedSide:
        return ComparedSide(number, self.consumers[number].position)

    def sides(self, number: int) -> tuple[ComparedSide, ComparedSide]:
        return self.side(number), self.side(self.output.active.number)

    def evidence(self, number: int) -> VerificationEvidence:
        return VerificationEvidence(VerificationMode.EXPLAINED, 0, *self.sides(number))

    def drop_place(self, number: int) -> None:
        if may_drop_place(self.output, number):
            self.rows.held.pop(number, None)
