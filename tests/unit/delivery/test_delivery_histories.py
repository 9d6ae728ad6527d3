"""Any history of a writer: deliveries, failures, deaths, people. Nothing is lost, doubled or out of order.

The log is in memory and so are the targets, because only the decisions are tried here: a ``Stream`` never
takes what is at or below the last message it has, so whatever is skipped once is missing for ever; a
``Shelf`` takes bindings whole and never changes one.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from tests.support.clocks import Clock
from tests.support.consensus import MortalConsensus
from tests.support.faults import Killed, at_point
from tests.support.log_samples import LogInMemory, given_binding, given_messages
from tests.support.memory_letters import LetterList
from tests.support.memory_writers import Shelf, Stream
from tests.support.pipeline_world import NO_LIMIT

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.lease import LEASE
from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.delivery.deliver import deliver_to
from tidemark.delivery.operator.action_plan import ChangedMeanwhile, NotPossible
from tidemark.delivery.operator.actions import OperatorActions
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.resume import NotRegistered, resume_writer
from tidemark.delivery.state.lease import LeaseLost
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, WriterState
from tidemark.faults import VARIABLE, FaultPoint
from tidemark.log.model.binding import Binding
from tidemark.log.model.manifest import LogFile, Manifest

pytestmark = pytest.mark.unit

HOLE = "-"


@dataclass(eq=False)
class MemoryLog(LogInMemory):
    """A published log: bindings of the topics ``a`` and ``b``, with holes."""

    manifest: Manifest = field(default_factory=lambda: Manifest("orders"))
    reached: dict[str, int] = field(default_factory=lambda: {"a": 0, "b": 0})

    def publish(self, *letters: str) -> None:
        t, base = 1_000 * (len(self.bindings) + 1), self.manifest.end + 1
        given = {topic: text for topic, text in zip("ab", letters, strict=False) if text}
        slices = [
            (topic, 0, self.reached[topic], self.reached[topic] + len(text)) for topic, text in given.items()
        ]
        binding = given_binding(t, base, *slices, run_id=f"run-{t}")
        files = [file for topic, text in given.items() if (file := self._file(binding, topic, text))]
        self.reached |= {topic: self.reached[topic] + len(text) for topic, text in given.items()}
        self.bindings.append(binding)
        self.manifest = self.manifest.with_binding(t, binding.end, files, NO_LIMIT)

    def _file(self, binding: Binding, topic: str, text: str) -> LogFile | None:
        lower = self.reached[topic]
        values = {lower + i: letter.encode() for i, letter in enumerate(text) if letter != HOLE}
        if not values:
            return None
        batch = given_messages(binding, topic, 0, values)
        ids, path = batch["id"].to_pylist(), f"{binding.t}-{topic}"
        self.batches[path] = batch
        return LogFile(path, binding.t, topic, 0, ids[0], ids[-1], len(ids), 1, "")

    @property
    def opened(self) -> PublishedLog:
        return PublishedLog(self, self, self.manifest)

    @property
    def ids(self) -> list[int]:
        """The ids of all messages."""
        return [id_ for file in self.manifest.files for id_ in self.batches[file.path]["id"].to_pylist()]


class History:
    """A writer, its target and its log, and what may happen to them."""

    def __init__(self, writer: Stream) -> None:
        self.writer, self.log, self.clock, self.letters = writer, MemoryLog(), Clock(), LetterList()
        self.consensus = MortalConsensus(MemoryConsensus())
        self.holders = (f"run {number}" for number in count(1))

    @property
    def positions(self) -> Positions:
        return Positions(self.consensus, "orders")

    @property
    def operator(self) -> OperatorActions:
        return OperatorActions(self.positions, self.log.opened, self.clock)

    @property
    def state(self) -> WriterState | None:
        return self.positions.load(self.writer.name)

    @property
    def position(self) -> int:
        return self.state.position if self.state else -1

    # What happens

    def publish(self, a: str, b: str) -> None:
        if a or b:
            self.log.publish(a, b)

    def deliver(self, limit: int = NO_LIMIT) -> None:
        deliver_to(
            self.writer,
            self.log.opened,
            self.positions,
            next(self.holders),
            write_parts_here,
            limit=limit,
            reload=lambda: self.state,
            clock=self.clock,
        )

    def resume(self, singly: int = 0, stop_after: int = 1_000, tick: int = 0) -> None:
        asked = count()
        with suppress(NotRegistered):
            resume_writer(
                self.writer,
                self.log.opened,
                self.positions,
                next(self.holders),
                singly=singly,
                show=lambda line: None,
                clock=self._ticking(tick),
                is_stopping=lambda: next(asked) >= stop_after,
            )

    def _ticking(self, tick: int) -> Callable[[], int]:
        def look() -> int:
            self.clock.now += tick
            return self.clock.now

        return look

    def acknowledge(self, further: int) -> None:
        """What a person does who lets the next messages pass."""
        with suppress(NotPossible, ChangedMeanwhile):
            passed = self.positions.acknowledged(self.writer.name)
            waiting = [id_ for id_ in self.log.ids if id_ > self.position and id_ not in passed]
            if waiting:
                chosen = waiting[: 1 + further]
                ids = (chosen[0], chosen[-1])
                plan = self.operator.acknowledge(self.writer, *ids, self.letters, untried=True)
                plan.execute(AuditEntry("acknowledge", "ann", "why", self.clock()))

    def rewind(self, back: int) -> None:
        with suppress(NotPossible, ChangedMeanwhile):
            plan = self.operator.rewind(self.writer.name, self.position - 1 - back)
            plan.execute(AuditEntry("rewind", "ann", "why", self.clock()))

    def stop(self) -> None:
        with suppress(NotPossible, ChangedMeanwhile):
            self.operator.stop(self.writer.name).execute(AuditEntry("stop", "ann", "why", self.clock()))

    def open(self) -> None:
        with suppress(NotPossible, ChangedMeanwhile):
            self.operator.open(self.writer.name).execute(AuditEntry("open", "ann", "why", self.clock()))

    def become_bad(self, distance: int) -> None:
        """A message after the position cannot be understood, now or when it comes."""
        self.writer.bad.add(self.position + 1 + distance)

    def refuse(self, distance: int) -> None:
        """The target does not take a message."""
        self.writer.refused.add(self.position + 1 + distance)

    def fail(self, where: str, times: int) -> None:
        """The target fails so many times."""
        getattr(self.writer, where).extend(["no answer"] * times)

    def heal(self) -> None:
        for trouble in (self.writer.bad, self.writer.refused):
            trouble.clear()
        for complaints in (self.writer.broken, self.writer.unprepared, self.writer.unfinished):
            complaints.clear()

    # Deaths

    def die(self) -> None:
        self.consensus.die()

    def live_again(self) -> None:
        self.consensus = self.consensus.of_next_process()
        self.clock.now += LEASE

    def overtaken(self) -> None:
        """Paused until its lease is over, while another run delivers."""
        self.clock.now += LEASE
        self.deliver()

    # What must hold

    def check(self) -> None:
        """No position past a message that was neither written nor acknowledged."""
        position, passed = self.position, self.positions.acknowledged(self.writer.name)
        there = {id_ for ids in (self.writer.ids, *self.writer.streams.values()) for id_ in ids}
        if isinstance(self.writer, Shelf):  # what is of an unfinished binding stands there with its rest
            unfinished = [b for b in self.log.bindings if b.base <= position < b.end]
            there |= {id_ for binding in unfinished for id_ in range(binding.base, binding.end + 1)}
        missing = [id_ for id_ in self.log.ids if id_ <= position and id_ not in there | passed]
        assert not missing, f"the position is {position}, but {missing} are nowhere"
        assert {letter.id for letter in self.letters} >= passed
        assert not there & passed or isinstance(self.writer, Shelf), f"{there & passed} were let pass"
        for ids in self.writer.streams.values():
            assert ids == sorted(set(ids))

    def end(self) -> None:
        """The cause of all trouble is gone, and the next runs do what is left."""
        self.heal()
        for _ in range(3):
            self.deliver()
            self.resume()
        expected = [id_ for id_ in self.log.ids if id_ not in self.positions.acknowledged(self.writer.name)]
        assert self.position == self.log.manifest.end
        assert self.state is not None
        assert (self.state.gate, self.state.lease) == (None, None)
        there = self.writer.ids or sorted(i for ids in self.writer.streams.values() for i in ids)
        assert there == expected


LETTERS = st.sampled_from(["x", "xx", "xxx", "-x", "x-", "x-x", "--"])
SMALL, DISTANCE = st.integers(0, 3), st.integers(0, 5)
TICKS = st.sampled_from([0, 600_000])
"""How long a look at the clock takes, in µs: nothing, or so long that every other message is committed."""


def step(name: str, *arguments: st.SearchStrategy[Any], dies: Sequence[str] = ()) -> st.SearchStrategy[Any]:
    """Something that happens, perhaps with a death on the way."""
    points = [point for point in FaultPoint if point.startswith(tuple(dies))]
    fate = st.tuples(st.sampled_from(["die", "overtaken"]), st.sampled_from(points), st.integers(1, 4))
    return st.tuples(st.tuples(st.just(name), *arguments), st.none() | fate if points else st.none())


RUNS = [
    step("deliver", st.sampled_from([1, 4, NO_LIMIT]), dies=["deliver."]),
    step(
        "resume", st.integers(0, 2), st.integers(0, 5) | st.just(1_000), TICKS, dies=["resume.", "deliver."]
    ),
]
TROUBLE = [
    step("become_bad", DISTANCE),
    step("refuse", DISTANCE),
    step("fail", st.sampled_from(["broken", "unprepared", "unfinished"]), st.integers(1, 3)),
    step("heal"),
]
PEOPLE = [
    step("acknowledge", SMALL, dies=["acknowledge."]),
    step("rewind", SMALL, dies=["rewind."]),
    step("stop"),
    step("open"),
]
PUBLISH = [step("publish", LETTERS, LETTERS), step("publish", LETTERS, st.just(""))]
ROUND = st.tuples(
    st.one_of(PUBLISH),
    st.one_of(TROUBLE),
    st.one_of(TROUBLE),
    RUNS[0],
    st.one_of(TROUBLE + PEOPLE),
    st.one_of(RUNS + PEOPLE),
    RUNS[1],
)
HISTORIES = st.lists(ROUND, min_size=1, max_size=4).map(lambda rounds: list(chain.from_iterable(rounds)))
"""Something comes, something is wrong, a run; an operator does something about it, or more goes wrong."""


def live(writer: Stream, history: Sequence[tuple[tuple[Any, ...], Any]], patch: pytest.MonkeyPatch) -> None:
    """Let a history happen, and look after every step whether something was lost."""
    world = History(writer)
    for (name, *arguments), fate in history:
        note(f"{name} {arguments} {fate}")
        if fate:
            _await(world, patch, *fate)
        with suppress(Killed, LeaseLost):
            getattr(world, name)(*arguments)
        patch.delenv(VARIABLE, raising=False)
        if world.consensus.is_dead:
            world.live_again()
        world.check()
    world.end()
    world.check()


def _await(world: History, patch: pytest.MonkeyPatch, fate: str, point: FaultPoint, time: int) -> None:
    at_point(patch, point, getattr(world, fate), time)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(Stream, id="a stream"),
        pytest.param(lambda: Stream(apart=True), id="a stream for every part"),
        pytest.param(Shelf, id="a shelf"),
    ],
)
@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(history=HISTORIES)
def test_whatever_happens_nothing_is_lost_doubled_or_out_of_order(make, history):
    with pytest.MonkeyPatch.context() as patch:
        live(make(), history, patch)


def test_a_history_that_goes_wrong_is_noticed():
    """The check itself: a position that was pushed past a message."""
    world = History(Stream())
    world.publish("xxx", "")
    world.fail("broken", 2)
    world.deliver()
    state = world.state
    assert state is not None
    assert state.gate is not None
    assert state.gate.cause is Cause.TARGET
    world.positions.commit(state, 1, None, state.gate)
    with pytest.raises(AssertionError, match=r"the position is 1, but \[0, 1\] are nowhere"):
        world.check()
