"""An output through any history: bindings, deliveries, builds, handovers, returns, taints, readers, removals.

Checked after every step: statements 5, 14 to 20, 24 and 25 of `specs/renditions.md`, and "What must never
happen" of the design. Every rule is one durable step of a process that may have read long before, so any
order of rules is also a history of crashes and repetitions.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.support.output_world import OneMessage, OutputWorld

from tidemark.outputs.errors import OutputDamaged, OutputError, StillActive, Tainted
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
DISTURBANCES = ["part", "rewind", "gate", "again", "again", "other code", "abandon"]
ENDS = ["renew", "renew", "end", "die"]
TERMS = [5, 15, 40, None]


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
        self.checked: object = None
        self.before: tuple[int, ...] = (0, 0)
        self.uppers: dict[int, int] = {}
        self.places: dict[int, str] = {}

    @initialize(messages=st.lists(MESSAGES, min_size=2, max_size=4), is_new=st.booleans())
    def begin(self, messages: list[list[OneMessage]], is_new: bool) -> None:
        """A writer with one rendition, or with a handover behind it."""
        for one in messages[:-1]:
            self.world.bind(one, gap=1)
        self._deliver(1, limit=99)
        self.world.bind(messages[-1], gap=1)
        self._advance(1)  # to the new binding, so that a handover is at its time
        self._deliver(1, limit=99)
        if not is_new:
            self._go_on(self.world.declare(0), pick=1, steps=5, force=False)

    # The source and delivery

    @rule(
        messages=st.none() | MESSAGES, gap=st.sampled_from([0, 0, 2]), left_out=PICK, advances=st.booleans()
    )
    def replicate(self, messages: list[OneMessage] | None, gap: int, left_out: int, advances: bool) -> None:
        """A binding, or time that passes without one, and its delivery to some of the renditions."""
        if messages is None:
            self.world.bind_nothing(gap + 1)
        else:
            self.world.bind(messages, gap)
        if left_out % 2:
            self._advance(self.world.output.active.number)
        for one in self.world.output.renditions:
            if left_out % (one.number + 2):
                self._deliver(one.number, limit=3)
            else:
                self._stop_midway(one.number, left_out)
            if advances:
                self._advance(one.number)

    @rule(pick=PICK, what=st.sampled_from(DISTURBANCES))
    def disturb(self, pick: int, what: str) -> None:
        """What happens to a consumer apart from deliveries that succeed."""
        number, world = self._number(pick), self.world
        consumer, is_alive = world.consumers[number], world.is_delivered_to(number)
        times = sorted(consumer.digests)
        match what:
            case "part":
                self._stop_midway(number, pick)
            case "rewind":
                consumer.position = min(pick % 20 - 1, consumer.position)
            case "gate":
                consumer.is_gate_open = not consumer.is_gate_open
            case "again" | "other code" if is_alive and times:
                world.redeliver(number, _one(times, pick), is_other_code=what == "other code")
                assert (world.output.rendition(number).taint is not None) == (what == "other code")
            case "abandon":
                self._try(lambda: abandon(world.output, number, world.signature()))

    @rule(pick=PICK, old=PICK)
    def read_the_objects(self, pick: int, old: int) -> None:
        """A process reads, and acts on it later."""
        self.uppers_read.append(self.world.bindings_upper)
        self.outputs_read.append(self.world.output)
        self.sinces_read.append(self.world.readers.since)
        number = self._number(pick)
        self.progress.append((number, self.world.upper(number, _one(self.uppers_read, old))))

    @precondition(lambda self: self.progress)
    @rule(pick=PICK)
    def advance_late(self, pick: int) -> None:
        self._advance(*_one(self.progress, pick))

    # Renditions

    @rule(pick=PICK, is_late=st.booleans(), steps=st.integers(1, 6), force=st.booleans())
    def rebuild(self, pick: int, is_late: bool, steps: int, force: bool) -> None:
        """The steps of a rebuild, up to a crash: declare, build, verify, hand over, and that again."""
        if len(self.world.output.renditions) < 6:
            number = self.world.declare(_one(self.world.bindings, pick).t if is_late else 0)
            self._go_on(number, pick, steps, force)

    @rule(pick=PICK, steps=st.integers(1, 6), force=st.booleans())
    def go_on(self, pick: int, steps: int, force: bool) -> None:
        """Another run goes on with a rebuild, or tries to."""
        self._go_on(self._number(pick, "building", "verified"), pick, steps, force)

    @rule(pick=PICK, old=PICK, delivers=st.booleans())
    def roll_back(self, pick: int, old: int, delivers: bool) -> None:
        number, world, signed = self._number(pick, "superseded"), self.world, self.world.signature()
        if delivers:
            self._deliver(number, limit=99)
            world.bind_nothing(1)
        consumer = self._consumer(number, old)
        done = self._switch(number, consumer, lambda one: roll_back(world.output, number, one, signed))
        if done:
            assert roll_back(world.output, number, consumer, signed) == world.output

    # Removal

    @rule(pick=PICK, old=PICK, first=st.integers(1, 3), steps=st.integers(2, 4))
    def retire(self, pick: int, old: int, first: int, steps: int) -> None:
        """Some of the steps of a removal, by a process that may have read both objects long ago."""
        number, world = self._number(pick, "superseded", "abandoned", "tainted", "retiring"), self.world
        if first <= 1 <= steps:
            self._forget(number, _one([*self.outputs_read, world.output][::-1], old // 20))
        if first <= 2 <= steps:
            since = _one([*self.sinces_read, world.readers.since][::-1], old // 20)
            self._try(lambda: begin_retire(world.output, number, since, world.signature()))
        if first <= 3 <= steps:
            world.drop_place(number)
        if steps == 4 and number not in world.rows.held:
            self._try(lambda: mark_dropped(world.output, number))

    # Readers

    @rule(pick=PICK, term=st.sampled_from(TERMS), slow=st.integers(0, GRACE - 1))
    def start_reader(self, pick: int, term: int | None, slow: int) -> None:
        output, readers = self.world.output, self.world.readers
        if readers.since >= output.frontier or len(self.followers) >= 3:
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
    @rule(pick=PICK, t=st.integers(0, 40), refreshes=st.booleans(), moves=st.booleans())
    def use_reader(self, pick: int, t: int, refreshes: bool, moves: bool) -> None:
        """A read as of a time and the next changes, with a cached output or a new one. The reader may then
        give up what it has, or die before that."""
        one = self.followers[_one(sorted(self.followers), pick)]
        if refreshes:
            one.output = self.world.output
        self._read(one, t)
        if self._follow(one) and moves:
            reader, known = one.capability.reader, self.world.readers
            self._hold(one, move_forward(known, reader, one.through + 1, self.now))

    @precondition(lambda self: self.followers)
    @rule(pick=PICK, what=st.sampled_from(ENDS))
    def renew_or_end(self, pick: int, what: str) -> None:
        """A reader renews its term or ends; one that dies leaves its row."""
        name = _one(sorted(self.followers), pick)
        one = self.followers[name]
        if what == "renew":
            try:
                self._hold(one, renew(self.world.readers, name, self.now + 30 * SECOND, self.now))
            except ReaderExpired:
                assert one.capability.is_expired_at(self.now)
            return
        del self.followers[name]
        if what == "end":
            self.world.commit_readers(drop(self.world.readers, name))

    @rule(seconds=st.integers(1, 40), expires=st.booleans())
    def pass_time(self, seconds: int, expires: bool) -> None:
        self.now += seconds * SECOND
        if expires:
            self.world.commit_readers(expire(self.world.readers, self.now))

    @rule(seed=st.integers(0, 2**32 - 1))
    def busy_day(self, seed: int) -> None:
        """Many of the steps above: choosing them one by one takes far longer than they do."""
        random = Random(seed)
        for _ in range(20):
            self._any_step(random)
            self.every_readable_time_has_one_rendition_and_one_answer()
            self.nothing_is_visible_before_its_binding_is_finished()
            self.nothing_goes_back()
            self.no_reader_loses_what_it_holds()

    def _any_step(self, random: Random) -> None:
        pick, old, flag, other = (
            random.randrange(100),
            random.randrange(100),
            *random.choices([True, False], k=2),
        )
        some = [(random.choice("abc"), random.choice([None, 0, 1, 2])) for _ in range(random.randint(1, 3))]
        match random.randrange(16):
            case 0 | 1 | 2 | 3:
                self.replicate(some if old % 4 else None, max(0, old % 6 - 3), pick, other)
            case 4:
                self.disturb(pick, random.choice(DISTURBANCES) if flag else "again")
            case 5:
                self.read_the_objects(pick, old)
            case 6 if self.progress:
                self.advance_late(pick)
            case 7:
                self.rebuild(pick, flag, 1 + old % 6, other)
            case 8:
                self.go_on(pick, 1 + old % 6, flag)
            case 9:
                self.roll_back(pick, old, flag)
            case 10 | 11:
                self.retire(pick, old, 1 + pick % 3 * flag, 2 + old % 3)
            case 12 if self.followers and flag:
                self.renew_or_end(pick, random.choice(ENDS))
            case 13:
                self.pass_time(1 + old % 12, flag)
            case 14 | 15 if self.followers:
                self.use_reader(pick, old % 40, flag, other)
            case _:
                self.start_reader(pick, random.choice(TERMS), old * SECOND // 10)

    # What must hold

    @invariant()
    def every_readable_time_has_one_rendition_and_one_answer(self) -> None:
        output, since = self.world.output, self.world.readers.since
        written = tuple((number, len(held)) for number, held in self.world.rows.held.items())
        if self.checked == (seen := (output, since, len(self.world.bindings), written)):
            return
        self.checked = seen
        metadata = activity(output)
        for t in self._times(since, output.frontier):
            number = output.resolve(t).number
            assert accumulate(metadata, t) == {number: 1}
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
                assert held.reader in self.world.readers.capabilities
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

    # How it is done

    def _number(self, pick: int, *states: str) -> int:
        """One of the renditions in these states; of all, without states and where there is none."""
        every = self.world.output.renditions
        return _one([one for one in every if one.state in states] or every, pick).number

    def _deliver(self, number: int, limit: int) -> None:
        for _ in range(limit):
            if self.world.is_delivered_to(number) and (binding := self.world.next_binding(number)):
                self.world.write(number, binding.t)
                self.world.finish(number, binding)

    def _stop_midway(self, number: int, pick: int) -> None:
        """A delivery that dies before it commits, or stops at a bad message."""
        if self.world.is_delivered_to(number) and (binding := self.world.next_binding(number)):
            self.world.write(number, binding.t, pick % 3)
            if binding.width > 1 and pick % 4:
                consumer = self.world.consumers[number]
                consumer.position = max(consumer.position, binding.base)
                consumer.reached = max(consumer.reached, consumer.position)

    def _advance(self, number: int, upper: int | None = None) -> None:
        known = self.world.upper(number) if upper is None else upper
        self._try(lambda: advance_frontier(self.world.output, number, known))

    def _go_on(self, number: int, pick: int, steps: int, force: bool) -> None:
        world, signed = self.world, self.world.signature()
        consumer = self._consumer(number, pick)
        if steps >= 2:
            # Some runs are forced to hand over to a rendition that is behind the active one.
            self._deliver(number, limit=99 if pick % 3 else pick % 2)
        if steps >= 3:
            self._try(lambda: mark_verified(world.output, number, world.evidence(number)))
        if steps == 4:
            self._try(lambda: revoke_if_changed(world.output, number, *world.sides(number)))
        if steps >= 5:
            # Both renditions have finished all bindings, but time goes on.
            world.bind_nothing(max(0, pick % 4 - 2))
            consumer = self._consumer(number, pick)
            now = world.sides(number)
            done = self._switch(
                number,
                consumer,
                lambda one: hand_over(world.output, number, one, now, signed, force=force),
            )
            if done and steps == 6:
                assert hand_over(world.output, number, consumer, now, signed) == world.output

    def _forget(self, number: int, output: Output) -> None:
        if number not in {one.number for one in output.renditions}:
            return
        try:
            readers = forget_times_of(self.world.readers, output, number, self.now)
        except StillNeeded:
            end, first = output.end_of_use(number), self.world.readers.earliest(self.now)
            assert end is not None
            assert first is not None
            assert self.world.readers.since < end
            assert first.t <= end
        except StillActive:
            assert number == output.active.number
        else:
            self.world.commit_readers(readers)

    def _consumer(self, number: int, old: int) -> ConsumerStanding:
        """A consumer with an upper that was measured now or long ago."""
        measured = [upper for n, upper in self.progress if n == number]
        upper = _one([self.world.upper(number)] * 3 + measured, old)
        return ConsumerStanding(upper, self.world.consumers[number].is_gate_open)

    def _read(self, one: FollowingReader, t: int) -> None:
        """Read as of a time; every answer is right, and every refusal has its cause."""
        try:
            rendition = check_readable(one.output, one.capability, t, self.now - one.slow)
        except ReaderExpired:
            assert not one.capability.is_usable_at(self.now - one.slow)
        except Forgotten:
            assert t < one.capability.t
        except (NotYet, Tainted):
            assert t >= one.output.frontier
        else:
            assert rendition.number == self._active_at(t)
            assert self.world.rows.state(rendition, t) == self.world.truth(rendition.number, t)

    def _follow(self, one: FollowingReader) -> bool:
        """Take the changes up to the cached frontier; they lead to the right state at every time."""
        usable = one.capability.is_usable_at(self.now - one.slow)
        try:
            check_followable(one.output, one.capability, one.through, one.since, self.now - one.slow)
        except ReaderExpired:
            assert not usable
            return False
        assert usable
        found = list(changes(one.output, self.world.rows, one.through))
        assert [update.t for update in found] == sorted(update.t for update in found)
        for t in range(one.through + 1, one.output.frontier):
            for update in (update for update in found if update.t == t):
                one.state[update.row] = one.state.get(update.row, 0) + update.diff
            state = {row: count for row, count in one.state.items() if count}
            assert state == self.world.truth(self._active_at(t), t)
        one.through = max(one.through, one.output.frontier - 1)
        return True

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
        except OutputDamaged:
            raise
        except OutputError:
            return
        assert after.handovers == before.handovers
        assert after.frontier == before.frontier or before.active.taint is None
        self.world.commit_output(after)

    def _switch(
        self, number: int, consumer: ConsumerStanding, step: Callable[[ConsumerStanding], Output]
    ) -> bool:
        """A handover that may be refused: at the frontier, to a rendition that is ahead of it."""
        before = self.world.output
        try:
            after = step(consumer)
        except OutputDamaged:
            raise
        except OutputError:
            return False
        h, candidate = before.frontier, before.rendition(number)
        assert [one.h for one in after.handovers] == [*(one.h for one in before.handovers), h]
        assert candidate.since <= h < after.frontier == consumer.upper <= self.world.upper(number)
        assert self.world.consumers[number].is_gate_open
        assert candidate.taint is None
        self.history.append((h, number))
        self.world.commit_output(after)
        return True


def _one(things: "list | tuple", pick: int):
    return things[pick % len(things)]


TestOutputHistory = pytest.mark.unit(OutputHistory.TestCase)
TestOutputHistory.settings = settings(max_examples=30, stateful_step_count=12)
