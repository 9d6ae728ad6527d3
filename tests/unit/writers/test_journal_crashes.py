"""Crashes and zombies at every write of a history of one entity: the same visible state.

The writer and the delivery are the real ones, control plane and tables are in memory. A history is delivered
in bulk, singly, or first singly and then in bulk; the process that takes over goes one of these ways, a
different one after every write. What is under way when a process dies has arrived in the order it was sent or
in reverse.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from tests.support.clocks import TickingClock
from tests.support.journal_samples import TOPIC, ActionLog, JournalWorld

from tidemark.journal.head import Head
from tidemark.writers.journal import partition as journal_part
from tidemark.writers.journal import writer as journal

pytestmark = pytest.mark.unit

HISTORIES = {
    "deletes": ["A1,2,3 D2 A4 D4 A5,6 D1"],
    "a delete at first": ["D3 A4 A5 D4"],
    "a purge at the end": ["A1,2,3 D2 P"],
    "a purge in the middle": ["A1,2 A3 P A1 A2"],
    "purges only": ["P P"],
    "all": ["A1,2,3 D2 A4 P A1 M - A2~5 D1 A3"],
    "in bindings": ["A1,2,3 D2", "P A1 - P", "A1 A2"],
    "numbers used again": ["A1,2,3 A3 A2 D2 P A1 A1"],
}
WAYS = ["in bulk", "singly", "mixed"]
MODES: dict[str, tuple[str, Any, int, int]] = {
    "in bulk, in order": ("in bulk", iter, 8_192, 8_192),
    "in bulk, in reverse": ("in bulk", reversed, 8_192, 8_192),
    "in bulk, in chunks": ("in bulk", reversed, 1, 1),
    "in bulk, some chunks together": ("in bulk", reversed, 1, 3),
    "singly": ("singly", iter, 8_192, 8_192),
    "mixed": ("mixed", reversed, 8_192, 8_192),
}
"""How it is delivered at first, in which order things arrive, how many messages are read at once, and how
many are written together."""


@cache
def log_of(name: str) -> ActionLog:
    log = ActionLog()
    for history in HISTORIES[name]:
        log.publish(history)
    return log


def house_of(name: str) -> JournalWorld:
    house = JournalWorld(log_of(name), segment_size=2)
    house.clock = TickingClock()
    return house


def go_on(house: JournalWorld, way: str) -> None:
    """Finish what another process has begun."""
    house.clock.tick = 0
    house.go(way)


def outcome(house: JournalWorld) -> dict[str, Any]:
    """What a reader can tell, what is there besides, and what the control plane says."""
    reader = house.journal.of(TOPIC)
    gate, position = house.gate(house.process), house.position(house.process)
    return house.told() | {"rows": reader.rows("k"), "gate": gate, "position": position}


@cache
def undisturbed(name: str) -> dict[str, Any]:
    house = house_of(name)
    house.go("in bulk")
    return outcome(house)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", HISTORIES)
def test_every_way_ends_in_the_same_state(name, way):
    house = house_of(name)
    house.go(way)
    assert outcome(house) == undisturbed(name)


@pytest.mark.parametrize("name", HISTORIES)
def test_what_is_delivered_twice_is_written_once(name):
    house = house_of(name)
    house.go("in bulk")
    house.rewind("journal", -1)
    house.go("in bulk")
    assert (house.process.tables.written, outcome(house)) == ([], undisturbed(name))


@pytest.mark.parametrize("position", [-1, 0, 2])
@pytest.mark.parametrize("name", HISTORIES)
def test_nothing_that_was_purged_or_deleted_comes_back_after_a_rewind(name, position):
    """Not even when its tombstones are gone."""
    house = house_of(name)
    house.go("in bulk")
    house.journal.collect_garbage()
    if position < house.position(house.process):
        house.rewind("journal", position)
    house.go("in bulk")
    assert outcome(house) == undisturbed(name)


@pytest.mark.parametrize("name", HISTORIES)
def test_what_is_delivered_again_by_a_backfill_is_written_once(name):
    house = house_of(name)
    house.go("in bulk")
    house.deliver_again(house.started())
    assert (house.process.tables.written, outcome(house)) == ([], undisturbed(name))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", HISTORIES)
def test_who_dies_after_any_write_is_followed_by_another(name, mode, monkeypatch):
    way, order, at_once, together = MODES[mode]
    monkeypatch.setattr(journal, "MESSAGES_AT_ONCE", at_once)
    monkeypatch.setattr(journal_part, "ROWS_TOGETHER", together)
    monkeypatch.setattr(log_of(name), "rows_a_batch", at_once)
    writes, died = 0, True
    while died:
        house, next_way = house_of(name), WAYS[writes % 3]
        died = house.killed(way, writes, order)
        go_on(house, next_way)
        assert outcome(house) == undisturbed(name), f"died after {writes} writes, went on {next_way}"
        writes += 1


@pytest.mark.parametrize("mode", ["in bulk, in order", "in bulk, in chunks", "mixed"])
@pytest.mark.parametrize("name", HISTORIES)
def test_a_zombie_changes_nothing_however_late_its_writes_arrive(name, mode, monkeypatch):
    way, order, at_once, together = MODES[mode]
    monkeypatch.setattr(journal, "MESSAGES_AT_ONCE", at_once)
    monkeypatch.setattr(journal_part, "ROWS_TOGETHER", together)
    monkeypatch.setattr(log_of(name), "rows_a_batch", at_once)
    writes, late = 0, [...]
    while late:
        house, next_way = house_of(name), WAYS[writes % 3]
        late = house.overtaken(way, writes, order)
        go_on(house, next_way)
        house.land(late)
        assert outcome(house) == undisturbed(name), f"overtaken after {writes} writes, {next_way}"
        writes += 1


@pytest.mark.parametrize("name", ["a purge at the end", "a purge in the middle", "in bindings"])
def test_a_zombie_changes_nothing_when_its_writes_arrive_among_those_of_another(name):
    writes, late = 0, [...]
    while late:
        landed_after, landed = 0, True
        while landed:
            house = house_of(name)
            late = house.overtaken("in bulk", writes)
            landed = went_on_until(house, landed_after, lambda house=house, late=late: house.land(late))
            landed_after += 1
            assert outcome(house) == undisturbed(name), f"overtaken after {writes}, back after {landed_after}"
        writes += 1


def went_on_until(house: JournalWorld, writes: int, happen: Callable[[], None]) -> bool:
    """Finish, and let something happen after so many writes; whether it came to that."""
    happened: list[int] = []

    def fate(done: int) -> None:
        if done == writes:
            happen()
            happened.append(done)

    house.go("in bulk", fate)
    return bool(happened)


@pytest.mark.parametrize("order", [iter, reversed], ids=["in order", "in reverse"])
def test_a_head_that_is_purged_in_the_old_segment_is_gone_wherever_a_process_dies(order):
    """Else a search for expired entities would find it, long after a new incarnation has begun."""
    log = ActionLog()
    log.publish("N e0:P e0:A1")
    writes, died = 0, True
    while died:
        house = JournalWorld(log)
        house.journal.of(TOPIC).insert_head("e0", Head(79, 0, 0, 10_000, 5, None, 0, 0), 0)
        died = house.killed("in bulk", writes, order)
        house.go("in bulk")
        assert list(house.journal.heads(TOPIC, 79)) == [], f"died after {writes} writes"
        writes += 1
