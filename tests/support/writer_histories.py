"""Histories drawn for a journal writer: messages, and runs that crash, fail or lose their lease.

An entity's numbers may be repeated, left out, deleted and purged; a repeated number lies less than a segment
below the highest, as the contract demands.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from hypothesis import strategies as st
from tests.support.journal_samples import TOPIC, ActionLog, JournalWorld, WriterInMemory
from tests.support.memory_journal import Order, Write, fails_after
from tests.support.writer_model import Delivered
from tests.support.writer_model import Writer as Model

from tidemark.delivery.operator.action_plan import NotPossible
from tidemark.delivery.resume import NotRegistered
from tidemark.delivery.state.writer_state import Cause
from tidemark.writers.journal import partition as journal_part
from tidemark.writers.journal import writer as journal

ENTITIES = {0: ["k", "e0"], 1: ["j"]}
"""By partition."""
KEYS = ["k", "e0", "j"]


class Histories:
    """The next actions of every entity, one word each."""

    def __init__(self, draw: st.DrawFn, segment_size: int) -> None:
        self.draw, self.size = draw, segment_size
        self.highest = dict.fromkeys(KEYS, 0)

    def next(self, partition: int) -> str:
        """What a binding has of a partition."""
        count = self.draw(st.integers(1 - partition, 5))
        return " ".join(self._word(self.draw(st.sampled_from(ENTITIES[partition]))) for _ in range(count))

    def _word(self, key: str) -> str:
        kind, highest = self.draw(st.sampled_from("aaaaaaarrdddppmn-?!")), self.highest[key]
        if kind in "ar":
            back = self.draw(st.integers(0, min(self.size - 1, highest))) if kind == "r" else -1
            first = max(1, highest - back + (self.draw(st.sampled_from([0, 0, 2])) if kind == "a" else 0))
            last = first + self.draw(st.integers(0, 2))
            self.highest[key] = max(highest, last)
            numbers = ",".join(str(number) for number in range(first, last + 1))
            return f"{key}:A{numbers}{self.draw(st.sampled_from(['', '', '~5', '~30']))}"
        if kind == "d":
            to = self.draw(st.integers(1, highest + 2))
            # Without a head, a delete makes one that claims to have got so far.
            self.highest[key] = highest or to
            return f"{key}:D{to}"
        if kind == "p":
            self.highest[key] = 0
            return f"{key}:P"
        if kind == "!":
            return f"{key}:A{highest + 1}!"
        return "-" if kind == "-" else f"{key}:{kind.upper()}"


RUNS = st.tuples(
    st.just("run"),
    st.sampled_from(["deliver", "deliver", "0", "1", "2"]),
    st.sampled_from(["dies", "fails", "is overtaken", "works"]),
    st.integers(0, 8),
    st.integers(0, 3),
)
MEANWHILE = st.one_of(
    st.tuples(st.just("let_pass")),
    st.tuples(st.just("let_pass")),
    st.tuples(st.just("rewind_to"), st.sampled_from([-1, -1, 0, 3])),
    st.tuples(st.just("arrive")),
    st.tuples(st.just("wait_long")),
    st.tuples(st.just("backfill")),
)


@st.composite
def plans(draw: st.DrawFn) -> tuple[dict[str, int], list[tuple[Any, ...]]]:
    """How large things are, and what is published and done."""
    sizes = {
        "segment_size": draw(st.sampled_from([2, 3, 10, 10_000])),
        "at_once": draw(st.sampled_from([1, 2, 8_192])),
        "together": draw(st.sampled_from([1, 3, 8_192])),
        "a_part": draw(st.sampled_from([2, 250_000])),
        "most_heads": draw(st.sampled_from([0, 200_000])),
    }
    histories, steps = Histories(draw, sizes["segment_size"]), list[tuple[Any, ...]]()
    for _ in range(draw(st.integers(1, 4))):
        steps.append(("publish", histories.next(0), histories.next(1)))
        steps += draw(st.tuples(RUNS, MEANWHILE, RUNS) | st.tuples(RUNS, MEANWHILE) | st.tuples(RUNS))
    return sizes, steps


class HistoryWorld(JournalWorld):
    """A pipeline with a journal writer, and what may happen to it."""

    def __init__(self, segment_size: int) -> None:
        super().__init__(ActionLog(), segment_size=segment_size)
        self.segment_size = segment_size
        self.late: list[Write] = []
        """What zombies have on its way."""

    def proceed(self, writer: WriterInMemory, way: str) -> None:
        """As the gate says."""
        if way == "deliver":
            self.deliver(writer)
        else:
            with suppress(NotRegistered):
                self.resume(writer, singly=int(way))

    # What happens

    def publish(self, *histories: str) -> None:
        self.actions.publish(*histories)

    def run(self, way: str, what: str, writes: int, seed: int) -> None:
        """Let a process go its way, and die, fail or be overtaken on it."""
        shuffled = random.Random(seed).sample
        order: Order = iter if seed == 0 else lambda writes: shuffled(writes, len(writes))
        if what == "dies":
            self.killed(way, writes, order)
        elif what == "is overtaken":
            self.late += self.overtaken(way, writes, order)
        else:
            self.go(way, fails_after(writes) if what == "fails" else lambda done: None, order)

    def rewind_to(self, position: int) -> None:
        with suppress(NotPossible):
            self.rewind("journal", position)

    def backfill(self) -> None:
        self.deliver_again(self.started())

    def let_pass(self) -> None:
        """What a person does about the next message."""
        self.arrive()
        passed = self.positions.acknowledged("journal")
        for one in self.actions.messages:
            if one["id"] > self.reached and one["id"] not in passed:
                with suppress(NotPossible):
                    self.acknowledge(self.started(), one["id"])
                return

    @property
    def reached(self) -> int:
        state = self.positions.load("journal")
        return state.position if state else self.actions.manifest.end

    def arrive(self) -> None:
        """What zombies have written arrives."""
        self.land(self.late)
        self.late = []

    def wait_long(self) -> None:
        """So long that nothing is on its way any more, and tombstones are gone."""
        self.arrive()
        self.journal.collect_garbage()

    def end(self) -> None:
        """All goes well from now on, and what cannot be understood is let pass."""
        self.go("deliver")
        while (gate := self.gate(self.process)) is not None:
            self.go("0")
            if (again := self.gate(self.process)) and again.cause is Cause.MESSAGE:
                self.acknowledge(self.started(), again.first_id)
            assert self.gate(self.process) != gate, gate.reason
            self.go("deliver")
        self.arrive()

    # What must hold

    @property
    def expected(self) -> dict[str, Any]:
        """What the fold makes of the messages one by one, and pointers at the end of everything."""
        model = Model(TOPIC, self.segment_size)
        passed = self.positions.acknowledged("journal")
        for one in self.actions.messages:
            if one["id"] not in passed:
                names = ("id", "partition", "offset", "write_time", "t", "key", "value", "timestamp")
                headers = tuple((header["name"], header["value"]) for header in one["headers"])
                model.deliver([Delivered(*(one[name] for name in names), headers)])
        ends = {(s.topic, s.partition): s.upper - 1 for one in self.actions.bindings for s in one.slices}
        return {"pointers": ends, **{key: model.visible(key) for key in KEYS}}

    def rows_out_of_sight(self) -> set[Any]:
        """Rows that no reader will ever get, but that are still there."""
        reader = self.journal.of(TOPIC)
        seen = {(key, place) for key in KEYS for place in (reader.visible(key) or {"rows": ()})["rows"]}
        return {(key, place) for key in KEYS for place in reader.rows(key)} - seen


@contextmanager
def given_world(sizes: dict[str, int]) -> Iterator[HistoryWorld]:
    """Where things are as large as that."""
    world = HistoryWorld(sizes["segment_size"])
    world.actions.rows_a_batch = sizes["at_once"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "MESSAGES_AT_ONCE", sizes["at_once"])
        patch.setattr(journal, "MESSAGES_A_PART", sizes["a_part"])
        patch.setattr(journal_part, "ROWS_TOGETHER", sizes["together"])
        patch.setattr(journal_part, "MOST_HEADS", sizes["most_heads"])
        yield world
