"""Claims that meet an error: what was got is given, and nothing is put aside that a next claim would get."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.support.clocks import MORNING
from tests.support.contracts.flaky_consensus import Fault, FlakyConsensus
from tests.support.contracts.work_world import Stores, WorkWorld, given_declaration, memory_stores

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import ObjectKind, Snapshot, Undecided
from tidemark.work.queue.journal import TOGETHER
from tidemark.work.store.due import MemoryDue

pytestmark = pytest.mark.unit

WEEK = 7 * 86_400_000


class Unreachable(Exception):
    """What a driver raises when no node answers."""


class FailingConsensus(MemoryConsensus):
    """Answers so many times when asked for what is recent, then once not."""

    answers: int | None = None

    def recent(self, kind: ObjectKind, names: Sequence[str]) -> Mapping[str, Snapshot]:
        if self.answers == 0:
            self.answers = None
            raise Unreachable
        if self.answers is not None:
            self.answers -= 1
        return super().recent(kind, names)


class FailingDue(MemoryDue):
    """Answers so many times when asked for a page, then once not."""

    answers: int | None = None

    def page(self, *values: Any) -> Any:
        if self.answers == 0:
            self.answers = None
            raise Unreachable
        if self.answers is not None:
            self.answers -= 1
        return super().page(*values)


def given_flaky() -> tuple[WorkWorld, FlakyConsensus]:
    stores = memory_stores()
    flaky = FlakyConsensus(stores.entries)
    return WorkWorld(replace(stores, entries=flaky), given_declaration()), flaky


def test_an_entry_of_long_ago_whose_claim_was_lost_is_found_at_once():
    house, flaky = given_flaky()
    house.insert("k", process=MORNING + WEEK)
    house.clock.now += WEEK
    flaky.arm(Fault.REQUEST_LOST)
    with pytest.raises(Undecided):
        house.claim()
    assert house.claim_keys() == ["k"]


def test_I7_a_claim_in_doubt_is_asked_for_again_in_the_same_process():
    house, flaky = given_flaky()
    house.insert("k")
    house.clock.to("10:00:30")
    flaky.arm(Fault.ANSWER_LOST)
    with pytest.raises(Undecided):
        house.journal.claim("w1", 1, "request-1")
    (claimed,) = house.journal.claim("w1", 1, "request-1")
    assert claimed.token == house.stored("k").token


def test_what_was_claimed_before_an_error_is_given():
    consensus = FailingConsensus()
    house = WorkWorld(replace(memory_stores(), entries=consensus), given_declaration())
    for number in range(TOGETHER + 10):
        house.insert(f"k{number}")
    consensus.answers = 1
    assert [len(house.claim(limit=TOGETHER + 10)) for _ in range(2)] == [TOGETHER, 10]


def test_an_error_before_anything_was_claimed_is_raised_and_costs_nothing():
    consensus = FailingConsensus()
    house = WorkWorld(replace(memory_stores(), entries=consensus), given_declaration())
    house.insert("k")
    consensus.answers = 0
    with pytest.raises(Unreachable):
        house.claim()
    assert house.claim_keys() == ["k"]


@pytest.mark.parametrize("answers", range(6))
def test_hints_that_were_taken_before_an_error_are_taken_again(answers: int):
    due, memory = FailingDue(), memory_stores()
    house = WorkWorld(
        Stores(memory.entries, memory.registry, lambda name: due, memory.archive), given_declaration()
    )
    keys = [f"k{number}" for number in range(8)]
    for key in keys:
        house.insert(key)
    due.answers = answers
    with pytest.raises(Unreachable):
        house.claim(limit=8)
    assert sorted(house.claim_keys(limit=8)) == keys
