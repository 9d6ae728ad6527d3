"""An output in a control plane that loses requests and answers, with a second process in between.

``test_output_machine`` walks the pure rules. Here every step goes through the stores: it may get no answer,
its request may arrive during a later step, and another step may happen just before any of its commits. What
must never happen is checked after every step, on what is stored.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.support.contracts.flaky_consensus import Fault, FlakyConsensus
from tests.support.output_store_world import OutputStoreWorld

from tidemark.clock import SECOND
from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import ConsensusError
from tidemark.outputs.errors import OutputError
from tidemark.outputs.model.capability import Capability
from tidemark.outputs.model.rendition import GONE
from tidemark.outputs.reader_errors import ReaderExpired
from tidemark.outputs.state.progress import advance_frontier
from tidemark.outputs.state.reader_lease import ReaderLease, new_capability

TERM = 60 * SECOND
PICK = st.integers(0, 99)
FAULTS = st.lists(st.sampled_from([None, None, *Fault]), max_size=3)
ALL_STEPS = ["deliver", "bind", "time", "build", "hand over", "roll back", "retire", "reader"]
STEPS = st.sampled_from(ALL_STEPS)
MOST_RENDITIONS = 6


class OutputStoreHistory(RuleBasedStateMachine):
    """One writer's output."""

    def __init__(self) -> None:
        super().__init__()
        self.flaky = FlakyConsensus(MemoryConsensus())
        self.world = OutputStoreWorld.begun(self.flaky)
        self.flaky.meanwhile = self._let_the_rival
        self.rival: Callable[[], object] | None = None
        self.leases: list[ReaderLease] = []
        self.answers: dict[int, int] = {}
        self.before = (0, 0)

    @rule(step=STEPS, pick=PICK, faults=FAULTS)
    def alone(self, step: str, pick: int, faults: list[Fault | None]) -> None:
        self._attempt(step, pick, faults)

    @rule(step=STEPS, pick=PICK, faults=FAULTS, other=STEPS, others_pick=PICK)
    def beside_another(
        self, step: str, pick: int, faults: list[Fault | None], other: str, others_pick: int
    ) -> None:
        self.rival = partial(self._step, other, others_pick)
        self._attempt(step, pick, faults)
        self.rival = None

    @rule()
    def what_is_under_way_lands(self) -> None:
        self.flaky.land()

    @rule(seed=st.integers(0, 2**32 - 1))
    def busy_day(self, seed: int) -> None:
        """Many of the steps above: choosing them one by one takes far longer than they do."""
        random = Random(seed)
        for _ in range(20):
            faults = random.choices([None, None, *Fault], k=random.randrange(3))
            rival = partial(self._step, random.choice(ALL_STEPS), random.randrange(100))
            self.rival = random.choice([None, rival])
            self._attempt(random.choice(ALL_STEPS), random.randrange(100), faults)
            self.rival = None
            self.use_a_reader(random.randrange(100))
            self.nothing_goes_back()
            self.every_time_has_one_rendition_for_ever()
            self.only_finished_bindings_are_readable()
            self.what_is_dropped_is_out_of_use_for_good()

    @rule(pick=PICK)
    def use_a_reader(self, pick: int) -> None:
        """A reader reads a time that it holds, and may move on or end."""
        if not self.leases:
            return
        lease = self.leases[pick % len(self.leases)]
        with suppress(OutputError, ConsensusError):
            lease.while_held(self._read)
            if pick % 3 == 0:
                lease.move_forward(lease.check().t + pick % 20)
            elif pick % 3 == 1:
                lease.release()
                self.leases.remove(lease)

    @invariant()
    def nothing_goes_back(self) -> None:
        now = (self.world.readers.load().since, self.world.output.frontier)
        assert all(old <= new for old, new in zip(self.before, now, strict=True))
        assert self.world.output.since <= now[0] <= now[1]
        self.before = now

    @invariant()
    def every_time_has_one_rendition_for_ever(self) -> None:
        output = self.world.output
        for t in range(self.world.readers.load().since, output.frontier):
            number = output.resolve(t).number
            assert self.answers.setdefault(t, number) == number
            assert output.rendition(number).place not in self.world.removal.dropped

    @invariant()
    def only_finished_bindings_are_readable(self) -> None:
        for binding in self.world.progress.bindings.every():
            if binding.t < self.world.output.frontier and binding.t in self.answers:
                assert self.world.consumers.states[self.answers[binding.t]].reached >= binding.end

    @invariant()
    def what_is_dropped_is_out_of_use_for_good(self) -> None:
        for one in self.world.output.renditions:
            if one.number in self.world.removal.ended:
                assert one.state in GONE
        for lease in self.leases:
            with suppress(ReaderExpired, ConsensusError):
                lease.while_held(self._read)

    # How it is done

    def _read(self, capability: Capability) -> None:
        """Every time that a capability holds is there."""
        output = self.world.output
        for t in range(capability.t, output.frontier):
            assert output.resolve(t).place not in self.world.removal.dropped

    def _attempt(self, step: str, pick: int, faults: list[Fault | None]) -> None:
        self.flaky.arm(*faults)
        self._step(step, pick)
        self.flaky.disarm()

    def _let_the_rival(self) -> None:
        rival, self.rival = self.rival, None
        if rival:
            rival()

    def _step(self, step: str, pick: int) -> None:
        with suppress(OutputError, ConsensusError):
            self._act(step, pick)

    def _act(self, step: str, pick: int) -> None:
        world = self.world
        match step:
            case "deliver":
                for number in world.states if pick % 3 else [world.output.active.number]:
                    world.finish(number)
                advance_frontier(world.store, world.progress)
            case "bind" if pick % 2:
                world.bind(0, width=1 + pick % 2)
            case "bind":
                world.bind_nothing(world.control.bindings_head().upper + pick % 5)
            case "time":
                world.clock.pass_seconds(pick)
                world.readers.expire()
            case "build" if len(world.output.renditions) < MOST_RENDITIONS:
                self._build(pick)
            case "hand over":
                world.hand_over(self._number(pick, "verified", "building"), force=pick % 4 == 0)
            case "roll back":
                world.roll_back(self._number(pick, "superseded"))
            case "retire":
                world.retire(self._number(pick, "superseded", "retiring"))
            case "reader":
                self._register(pick)

    def _number(self, pick: int, *states: str) -> int:
        """One of the renditions in these states, or of all where there is none."""
        every = self.world.states
        numbers = [number for number, state in every.items() if state in states] or list(every)
        return numbers[pick % len(numbers)]

    def _build(self, pick: int) -> None:
        signature, world = self.world.signature(), self.world
        number = world.declare(signed=signature.at)
        if pick % 4:
            world.finish(world.output.active.number)
            world.finish(number)
            world.verify(number)
        if pick % 5 == 0:
            state = world.consumers.state(number)
            world.consumers.states[number] = replace(state, is_gate_open=False)

    def _register(self, pick: int) -> None:
        since, frontier = self.world.readers.load().since, self.world.output.frontier
        capability = new_capability(self.world.readers, since + pick % (frontier - since + 1), "a test", TERM)
        registered_at = self.world.readers.register(capability)
        self.leases.append(ReaderLease(self.world.readers, capability, registered_at, TERM))


TestOutputStoreHistory = pytest.mark.unit(OutputStoreHistory.TestCase)
TestOutputStoreHistory.settings = settings(max_examples=40, stateful_step_count=12)
