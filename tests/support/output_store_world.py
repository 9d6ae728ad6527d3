"""One writer's output in a control plane, with everything around it: bindings, consumers, places, a clock.

``OutputWorld`` in ``output_world`` is the same for the pure rules. Here every step goes through the stores,
so that it can be killed, outpaced, or get no answer. Consumers and places are plain values that all processes
of a test share.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from uuid import uuid4

from tests.support.clocks import Clock
from tests.support.output_samples import signed

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Consensus
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.binding import Binding, Slice, next_time
from tidemark.log.state.control import LogControl
from tidemark.outputs.model.evidence import VerificationEvidence, VerificationMode
from tidemark.outputs.model.lifecycle import RenditionProposal
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import Rendition, Signature
from tidemark.outputs.state import handover, lifecycle
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import ConsumerState, Progress, advance_frontier
from tidemark.outputs.state.reader_store import ReaderStore
from tidemark.outputs.state.retire import retire

WRITER = "accounts"
FIRST = RenditionProposal({"writer": {"shards": 8}}, "accounts", 0, signed(1))


@dataclass
class ConsumersInMemory:
    """``Consumers``; a rendition without an entry has not begun."""

    states: dict[int, ConsumerState] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    before_next: Callable[[], object] | None = None
    """Called once, before the next answer: what happens while a step reads."""

    def reached(self, number: int) -> int:
        return self.state(number).reached

    def state(self, number: int) -> ConsumerState:
        step_in, self.before_next = self.before_next, None
        if step_in:
            step_in()
        self.asked.append(number)
        return self.states.get(number, ConsumerState())


@dataclass
class RemovalInMemory:
    """``RenditionRemoval`` on sets, with how often each was called."""

    places: set[str]
    dropped: set[str] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)

    def end_consumer(self, rendition: Rendition) -> None:
        self.calls.append(f"end {rendition.number}")
        self.ended.add(rendition.number)

    def drop_place(self, rendition: Rendition) -> None:
        assert rendition.number in self.ended, "a process may still write to it"
        self.calls.append(f"drop {rendition.number}")
        self.places.discard(rendition.place)
        self.dropped.add(rendition.place)


@dataclass
class VersionsInMemory:
    """``VersionRemoval`` on numbers: what each rendition has lost, by its number."""

    there: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The times below which versions, and then changes, are gone."""
    calls: list[str] = field(default_factory=list)

    def drop_versions(self, rendition: Rendition, since: int) -> int:
        self.calls.append(f"versions {rendition.number} {since}")
        versions, changes = self.there.get(rendition.number, (0, 0))
        self.there[rendition.number] = max(versions, since), changes
        return 1

    def drop_changes(self, rendition: Rendition, since: int) -> int:
        self.calls.append(f"changes {rendition.number} {rendition.trimmed} {since}")
        versions, changes = self.there[rendition.number]
        assert versions >= since, "there would be versions without their changes"
        self.there[rendition.number] = versions, max(changes, since)
        return 1


class OutputStoreWorld:
    """See the module."""

    def __init__(self, consensus: Consensus | None = None) -> None:
        self.consensus = consensus or MemoryConsensus()
        self.pipeline = f"orders_{uuid4().hex[:12]}"  # on a real database objects stay
        self.clock = Clock()
        self.consumers = ConsumersInMemory()
        self.removal = RemovalInMemory({"accounts"})
        self.versions = VersionsInMemory()
        self.steps = count(1_000)

    @classmethod
    def begun(cls, consensus: Consensus | None = None, bindings: int = 1) -> "OutputStoreWorld":
        """With its first rendition, which has finished some bindings, the first of them at 10."""
        world = cls(consensus)
        world.store.create(FIRST)
        for number in range(bindings):
            world.bind(10 * (number + 1))
        world.deliver(1)
        return world

    @classmethod
    def with_second(cls, consensus: Consensus | None = None) -> "OutputStoreWorld":
        """With a verified second rendition; readers may read before 41, both have finished everything."""
        world = cls.begun(consensus, bindings=4)
        world.build()
        return world

    @classmethod
    def handed_over(cls, consensus: Consensus | None = None) -> "OutputStoreWorld":
        """With a handover from rendition 1 to rendition 2 at 41."""
        world = cls.with_second(consensus)
        world.hand_over(2)
        return world

    # What a process opens

    @property
    def store(self) -> OutputStore:
        return OutputStore(self.consensus, self.pipeline, WRITER)

    @property
    def readers(self) -> ReaderStore:
        return ReaderStore(self.store, self.clock)

    @property
    def control(self) -> LogControl:
        return LogControl(self.consensus, self.pipeline)

    @property
    def progress(self) -> Progress:
        return Progress(self.control, Bindings(self.control), self.consumers)

    @property
    def output(self) -> Output:
        return self.store.require()

    @property
    def states(self) -> dict[int, str]:
        return {one.number: str(one.state) for one in self.output.renditions}

    def signature(self) -> Signature:
        """A new one each time: another operator's action."""
        return signed(next(self.steps))

    # The log and its consumers

    def bind(self, t: int = 0, width: int = 1) -> Binding:
        """The next binding, at ``t`` or as soon after it as is allowed."""
        head = self.control.bindings_head()
        previous = self.control.binding_at(head.newest) if head.newest is not None else None
        base = previous.end + 1 if previous else 0
        at, slices = next_time(t, head.upper, previous), (Slice("orders", 0, base, base + width),)
        return self.control.add_binding(head, Binding(at, base, slices, f"run at {at}"))

    def bind_nothing(self, t: int) -> None:
        self.control.advance_upper(self.control.bindings_head(), t)

    def finish(self, number: int) -> None:
        """A rendition finishes everything that is bound; the frontier is not advanced."""
        last = max((one.end for one in self.progress.bindings.every()), default=-1)
        known = self.consumers.states.get(number, ConsumerState())
        self.consumers.states[number] = replace(known, position=last, reached=max(last, known.reached))

    def deliver(self, number: int) -> None:
        """A whole delivery to a rendition."""
        self.finish(number)
        advance_frontier(self.store, self.progress)

    # Steps with new signatures

    def build(self, **settings: object) -> int:
        """A rendition that is declared, delivered to and verified."""
        number = self.declare(**settings)
        self.removal.places.add(self.output.rendition(number).place)
        self.finish(number)
        self.verify(number)
        return number

    def declare(self, **settings: object) -> int:
        signature = self.signature()
        made = lifecycle.declare(self.store, lambda output: proposal_for(output, signature, **settings))
        return made.number

    def evidence(self, number: int) -> VerificationEvidence:
        active = self.output.active.number
        sides = (self.consumers.state(one).side(one) for one in (number, active))
        return VerificationEvidence(VerificationMode.EXACT, 40, *sides)

    def verify(self, number: int) -> None:
        lifecycle.record_verification(self.store, number, self.evidence(number))

    def hand_over(self, number: int, *, force: bool = False) -> int:
        """The time of the handover."""
        return handover.hand_over(self.store, self.progress, number, self.signature(), force=force).h

    def roll_back(self, number: int) -> int:
        """The time of the handover."""
        return handover.roll_back(self.store, self.progress, number, self.signature()).h

    def retire(self, number: int) -> Output:
        return retire(self.store, self.readers, number, self.removal, self.signature())


def proposal_for(output: Output, signature: Signature, **settings: object) -> RenditionProposal:
    """The next rendition; without settings of its own they differ from those of every other number."""
    number = output.next_number
    keys = settings or {"shards": 8 + number}
    return RenditionProposal({"writer": keys}, f"accounts_r{number}", 0, signature)
