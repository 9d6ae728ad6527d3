"""An output through any history: bindings, deliveries, builds, handovers, returns, taints, readers, removals.

Checked after every step: statements 5, 14 to 20, 24 and 25 of `specs/renditions.md`, and "What must never
happen" of the design. Every rule is one durable step of a process that may have read long before, so any
order of rules is also a history of crashes and repetitions.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.support.output_world import OneMessage, OutputWorld

from tidemark.outputs.errors import OutputError
from tidemark.outputs.model.capability import (
    GRACE,
    Capability,
    drop,
    expire,
    move_forward,
    register,
    renew,
)
from tidemark.outputs.model.handover import ConsumerStanding, advance_frontier, hand_over, roll_back
from tidemark.outputs.model.lifecycle import (
    abandon,
    begin_retire,
    mark_dropped,
    mark_verified,
    revoke_if_changed,
)
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.reading import activity, changes, check_followable, check_readable
from tidemark.outputs.model.retention import forget_times_of
from tidemark.outputs.model.updates import accumulate
from tidemark.outputs.reader_errors import Forgotten, NotYet, ReaderExpired, StillNeeded

SECOND = 1_000_000
MESSAGES = st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 2)), min_size=1, max_size=3)
PICK = st.integers(0, 99)
"""Chooses one of what there is at that moment."""


@dataclass
class FollowingReader:
    """A process that has the state at ``through`` and asks for the changes after it.

    Attributes:
        capability: As it knows it; the row may be gone.
        since: That of the readers object when it registered.
        output: The output that it has cached.
        state: What it has accumulated.
        through: Up to which time.
        slow: How far its clock is behind, in µs.
    """

    capability: Capability
    since: int
    output: Output
    state: dict[Hashable, int]
    through: int
    slow: int


class OutputHistory(RuleBasedStateMachine):
    """One writer's output."""

    def __init__(self) -> None:
        super().__init__()
        self.world = OutputWorld()
        self.now = 0
        self.history = [(0, 1)]
        self.uppers_read = [0]
        self.progress: list[tuple[int, int]] = []
        self.outputs_read = [self.world.output]
        self.sinces_read = [0]
        self.followers: dict[str, FollowingReader] = {}
        self.answers: dict[int, object] = {}
        self.before: tuple[int, ...] = (0, 0)
        self.uppers: dict[int, int] = {}
        self.places: dict[int, str] = {}

    # The source and delivery

    @rule(messages=MESSAGES, gap=st.integers(0, 3))
    def bind(self, messages: list[OneMessage], gap: int) -> None:
        self.world.bind(messages, gap)

    @rule(gap=st.integers(1, 3))
    def bind_nothing(self, gap: int) -> None:
        self.world.bind_nothing(gap)

    @rule(pick=PICK, count=st.integers(0, 2))
    def write_a_part(self, pick: int, count: int) -> None:
        """A delivery that dies before it commits."""
        number = self._number(pick)
        if self.world.is_delivered_to(number) and (binding := self.world.next_binding(number)):
            self.world.write(number, binding.t, count)

    @rule(pick=PICK, limit=st.integers(1, 4), advances=st.booleans())
    def deliver(self, pick: int, limit: int, advances: bool) -> None:
        """A delivery of some bindings; it may die before it advances the frontier."""
        number = self._number(pick)
        for _ in range(limit):
            if self.world.is_delivered_to(number) and (binding := self.world.next_binding(number)):
                self.world.write(number, binding.t)
                self.world.finish(number, binding)
        if advances:
            self._try(lambda: advance_frontier(self.world.output, number, self.world.upper(number)))

    @rule(pick=PICK, position=st.integers(-1, 20))
    def rewind(self, pick: int, position: int) -> None:
        consumer = self.world.consumers[self._number(pick)]
        consumer.position = min(position, consumer.position)

    @rule(pick=PICK, is_other_code=st.sampled_from([False, False, True]))
    def redeliver(self, pick: int, is_other_code: bool) -> None:
        number = self._number(pick)
        times = sorted(self.world.consumers[number].digests)
        if times and self.world.is_delivered_to(number):
            self.world.redeliver(number, times[pick % len(times)], is_other_code=is_other_code)

    @rule(pick=PICK)
    def close_or_open_a_gate(self, pick: int) -> None:
        consumer = self.world.consumers[self._number(pick)]
        consumer.is_gate_open = not consumer.is_gate_open

    @rule()
    def read_the_objects(self) -> None:
        """A process reads, and acts on it later."""
        self.uppers_read.append(self.world.bindings_upper)
        self.outputs_read.append(self.world.output)
        self.sinces_read.append(self.world.readers.since)

    @rule(pick=PICK, old=PICK)
    def measure_progress(self, pick: int, old: int) -> None:
        number = self._number(pick)
        self.progress.append((number, self.world.upper(number, _one(self.uppers_read, old))))

    @precondition(lambda self: self.progress)
    @rule(pick=PICK)
    def advance(self, pick: int) -> None:
        number, upper = _one(self.progress, pick)
        self._try(lambda: advance_frontier(self.world.output, number, upper))

    # Renditions

    @rule(pick=PICK, is_late=st.booleans())
    def declare(self, pick: int, is_late: bool) -> None:
        late = is_late and self.world.bindings
        if len(self.world.output.renditions) < 6:
            self.world.declare(_one(self.world.bindings, pick).t if late else 0)

    @rule(pick=PICK)
    def verify(self, pick: int) -> None:
        number = self._number(pick)
        self._try(lambda: mark_verified(self.world.output, number, self.world.evidence(number)))

    @rule(pick=PICK)
    def look_at_evidence(self, pick: int) -> None:
        number = self._number(pick)
        self._try(lambda: revoke_if_changed(self.world.output, number, *self.world.sides(number)))

    @rule(pick=PICK, old=PICK, force=st.booleans(), repeats=st.booleans())
    def hand_over(self, pick: int, old: int, force: bool, repeats: bool) -> None:
        number, world, signed = self._number(pick), self.world, self.world.signature()
        consumer = self._consumer(number, old)
        self._switch(
            number,
            lambda: hand_over(world.output, number, consumer, world.sides(number), signed, force=force),
        )
        if repeats:
            self._unchanged(
                number, lambda: hand_over(world.output, number, consumer, world.sides(number), signed)
            )

    @rule(pick=PICK, old=PICK, repeats=st.booleans())
    def roll_back(self, pick: int, old: int, repeats: bool) -> None:
        number, world, signed = self._number(pick), self.world, self.world.signature()
        consumer = self._consumer(number, old)
        self._switch(number, lambda: roll_back(world.output, number, consumer, signed))
        if repeats:
            self._unchanged(number, lambda: roll_back(world.output, number, consumer, signed))

    @rule(pick=PICK)
    def abandon(self, pick: int) -> None:
        self._try(lambda: abandon(self.world.output, self._number(pick), self.world.signature()))

    # Removal

    @rule(pick=PICK, old=PICK)
    def forget(self, pick: int, old: int) -> None:
        """The first step of a removal, by a process that may have read the output long ago."""
        output = _one(self.outputs_read[::-1], old // 10)
        number = _one(output.renditions, pick).number
        try:
            readers = forget_times_of(self.world.readers, output, number, self.now)
        except OutputError as refusal:
            assert not isinstance(refusal, StillNeeded) or refusal.capability <= refusal.since
        else:
            self.world.commit_readers(readers)

    @rule(pick=PICK, old=PICK)
    def begin_retire(self, pick: int, old: int) -> None:
        since = _one([*self.sinces_read, self.world.readers.since][::-1], old // 10)
        self._try(lambda: begin_retire(self.world.output, self._number(pick), since))

    @rule(pick=PICK)
    def drop_a_place(self, pick: int) -> None:
        self.world.drop_place(self._number(pick))

    @rule(pick=PICK)
    def mark_dropped(self, pick: int) -> None:
        number = self._number(pick)
        if number not in self.world.rows.held:
            self._try(lambda: mark_dropped(self.world.output, number))

    @rule(pick=PICK)
    def retire_at_once(self, pick: int) -> None:
        """All steps of a removal by one process; any of them may be refused."""
        number, world = self._number(pick), self.world
        try:
            world.commit_readers(forget_times_of(world.readers, world.output, number, self.now))
            world.commit_output(begin_retire(world.output, number, world.readers.since))
        except OutputError:
            return
        world.drop_place(number)
        world.commit_output(mark_dropped(world.output, number))

    # Readers

    @rule(pick=PICK, term=st.sampled_from([None, 20, 60]), slow=st.integers(0, GRACE - 1))
    def start_reader(self, pick: int, term: int | None, slow: int) -> None:
        output, readers = self.world.output, self.world.readers
        if readers.since >= output.frontier or len(self.followers) >= 4:
            return
        # Times near handovers and near since matter most.
        edges = [t for h, _ in self.history for t in (h - 1, h, h + 1)] + [readers.since, output.frontier - 1]
        t = _one([t for t in edges if readers.since <= t < output.frontier], pick)
        deadline = None if term is None else self.now + term * SECOND
        capability = Capability(f"reader {self.world.signature().at}", t, deadline, "a test")
        self.world.commit_readers(register(readers, capability))
        state = self.world.rows.state(check_readable(output, capability, t, self.now), t)
        follower = FollowingReader(capability, readers.since, output, dict(state), t, slow)
        self.followers[capability.reader] = follower

    @precondition(lambda self: self.followers)
    @rule(pick=PICK, t=st.integers(0, 80), refreshes=st.booleans())
    def read(self, pick: int, t: int, refreshes: bool) -> None:
        """As of a time, with a cached output or a new one."""
        one = self._follower(pick, refreshes)
        try:
            rendition = check_readable(one.output, one.capability, t, self.now - one.slow)
        except ReaderExpired:
            assert one.capability.deadline is not None
            assert one.capability.deadline <= self.now - one.slow
        except Forgotten:
            assert t < one.capability.t
        except OutputError:
            assert t >= one.output.frontier
        else:
            assert rendition.number == self._active_at(t)
            assert self.world.rows.state(rendition, t) == self.world.truth(rendition.number, t)

    @precondition(lambda self: self.followers)
    @rule(pick=PICK, refreshes=st.booleans(), moves=st.booleans())
    def follow(self, pick: int, refreshes: bool, moves: bool) -> None:
        """The next changes; the reader then may give up what it has, or die before that."""
        one = self._follower(pick, refreshes)
        usable = one.capability.is_usable_at(self.now - one.slow)
        try:
            check_followable(one.output, one.capability, one.through, one.since, self.now - one.slow)
        except ReaderExpired:
            assert not usable
            return
        assert usable
        found = list(changes(one.output, self.world.rows, one.through))
        assert [update.t for update in found] == sorted(update.t for update in found)
        for t in range(one.through + 1, one.output.frontier):
            for update in (update for update in found if update.t == t):
                one.state[update.row] = one.state.get(update.row, 0) + update.diff
            state = {row: count for row, count in one.state.items() if count}
            assert state == self.world.truth(self._active_at(t), t)
        one.through = max(one.through, one.output.frontier - 1)
        if moves:
            self._hold(
                one, move_forward(self.world.readers, one.capability.reader, one.through + 1, self.now)
            )

    @precondition(lambda self: self.followers)
    @rule(pick=PICK, term=st.integers(10, 60))
    def renew(self, pick: int, term: int) -> None:
        one = self._follower(pick)
        try:
            readers = renew(self.world.readers, one.capability.reader, self.now + term * SECOND, self.now)
        except ReaderExpired:
            assert one.capability.is_expired_at(self.now)
        else:
            self._hold(one, readers)

    @precondition(lambda self: self.followers)
    @rule(pick=PICK, is_clean=st.booleans())
    def stop_reader(self, pick: int, is_clean: bool) -> None:
        """A reader ends; one that crashed leaves its row."""
        reader = self.followers.pop(_one(sorted(self.followers), pick)).capability.reader
        if is_clean:
            self.world.commit_readers(drop(self.world.readers, reader))

    @rule(seconds=st.integers(1, 40), expires=st.booleans())
    def pass_time(self, seconds: int, expires: bool) -> None:
        self.now += seconds * SECOND
        if expires:
            self.world.commit_readers(expire(self.world.readers, self.now))

    # What must hold

    @invariant()
    def every_readable_time_has_one_rendition_and_one_answer(self) -> None:
        output, since = self.world.output, self.world.readers.since
        for t in self._times(since, output.frontier):
            number = output.resolve(t).number
            assert accumulate(activity(output), t) == {number: 1}
            assert number == self._active_at(t)
            # A dropped place here is one that a new reader could still ask for.
            answer = (number, self.world.rows.state(output.rendition(number), t))
            assert answer == (number, self.world.truth(number, t))
            assert self.answers.setdefault(t, answer) == answer
        with pytest.raises(OutputError) as refusal:
            output.resolve(output.frontier)
        assert not isinstance(refusal.value, NotYet) or output.active.taint is None

    @invariant()
    def nothing_is_visible_before_its_binding_is_finished(self) -> None:
        for binding in self.world.bindings:
            if binding.t < self.world.output.frontier:
                assert self.world.consumers[self._active_at(binding.t)].reached >= binding.end

    @invariant()
    def nothing_goes_back(self) -> None:
        now = (self.world.readers.since, self.world.output.frontier)
        assert all(old <= new for old, new in zip(self.before, now, strict=True))
        assert self.world.output.since <= now[0] <= now[1]
        self.before = now
        for number in self.world.consumers:
            upper = self.world.upper(number)
            assert self.uppers.get(number, 0) <= upper
            self.uppers[number] = upper

    @invariant()
    def no_reader_loses_what_it_holds(self) -> None:
        output = self.world.output
        for one in self.followers.values():
            held = one.capability
            if held.is_usable_at(self.now - one.slow):
                # The changes at the capability itself need the state before it.
                first = max(held.t - 1, one.since)
                for t in self._times(first, output.frontier):
                    assert self._active_at(t) in self.world.rows.held
                assert self.world.readers.since <= first or held.t == one.since

    @invariant()
    def numbers_and_places_are_never_used_again(self) -> None:
        for one in self.world.output.renditions:
            assert self.places.setdefault(one.number, one.place) == one.place
        assert len(set(self.places.values())) == len(self.places)

    def _number(self, pick: int) -> int:
        return _one(self.world.output.renditions[::-1], pick).number

    def _consumer(self, number: int, old: int) -> ConsumerStanding:
        """A consumer with an upper that was measured now or long ago."""
        measured = [upper for n, upper in self.progress if n == number]
        upper = _one([self.world.upper(number)] * 3 + measured, old)
        return ConsumerStanding(upper, self.world.consumers[number].is_gate_open)

    def _follower(self, pick: int, refreshes: bool = False) -> FollowingReader:
        one = self.followers[_one(sorted(self.followers), pick)]
        if refreshes:
            one.output = self.world.output
        return one

    def _hold(self, one: FollowingReader, readers: object) -> None:
        self.world.commit_readers(readers)
        one.capability = self.world.readers.capabilities[one.capability.reader]

    def _active_at(self, t: int) -> int:
        return next(number for h, number in reversed(self.history) if h <= t)

    def _times(self, first: int, end: int) -> list[int]:
        """The times at which something may change, and those right before them."""
        edges = {*(one.t for one in self.world.bindings), *(h for h, _ in self.history), first, end}
        return sorted(t for edge in edges for t in (edge - 1, edge) if first <= t < end)

    def _try(self, step: Callable[[], Output]) -> None:
        """A step that may be refused, and then changes nothing."""
        before = self.world.output
        try:
            after = step()
        except OutputError:
            return
        assert after.handovers == before.handovers
        self.world.commit_output(after)

    def _switch(self, number: int, step: Callable[[], Output]) -> None:
        """A handover that may be refused: at the frontier, to a rendition that is ahead of it."""
        before = self.world.output
        try:
            after = step()
        except OutputError:
            return
        h, candidate = before.frontier, before.rendition(number)
        assert [one.h for one in after.handovers] == [*(one.h for one in before.handovers), h]
        assert candidate.since <= h < after.frontier <= self.world.upper(number)
        assert self.world.consumers[number].is_gate_open
        assert candidate.taint is None
        self.history.append((h, number))
        self.world.commit_output(after)

    def _unchanged(self, number: int, step: Callable[[], Output]) -> None:
        """A repeated handover: it changes nothing where it was done, and is refused where it was not."""
        before = self.world.output
        try:
            assert step() == before
        except OutputError:
            assert before.handovers[-1].rendition != number or len(before.handovers) == 1


def _one(things: "list | tuple", pick: int):
    return things[pick % len(things)]


TestOutputHistory = pytest.mark.unit(OutputHistory.TestCase)
TestOutputHistory.settings = settings(max_examples=60, stateful_step_count=40)
