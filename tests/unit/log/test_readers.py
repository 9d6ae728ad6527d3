"""Readers of a log: what they have opened is known, for as long as they live."""

import json
from threading import Event
from typing import Any

import pytest
from tests.support.clocks import Clock
from tests.support.consensus import RacingConsensus

from tidemark.clock import SECOND
from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Change, ObjectKey, ObjectKind, Snapshot
from tidemark.log.state.control import LogControl, LogHead
from tidemark.log.state.readers import TERM, Reading, readers, reading_log

pytestmark = pytest.mark.unit


@pytest.fixture
def clock() -> Clock:
    return Clock()


def publish(control: LogControl, manifest: str) -> None:
    control.replace_log(control.log_head().version, LogHead(manifest=manifest, digest="d"))


def opened(control: LogControl, clock: Clock) -> list[tuple[str, ...]]:
    return sorted(reader.manifests for reader in readers(control, clock.now))


def test_a_reader_says_what_it_has_opened_until_it_is_done(control, clock):
    publish(control, "one")
    with reading_log(control, "verify", clock) as reading:
        assert reading.take_up().manifest == "one"
        assert opened(control, clock) == [("one",)]
        (reader,) = readers(control, clock.now)
        assert reader.who.startswith("verify on ")
    assert readers(control, clock.now) == []


def test_a_reader_that_looks_again_keeps_what_it_had(control, clock):
    publish(control, "one")
    with reading_log(control, "verify", clock) as reading:
        reading.take_up()
        publish(control, "two")
        assert reading.take_up().manifest == "two"
        assert reading.take_up().manifest == "two"
        assert opened(control, clock) == [("one", "two")]


def test_a_log_without_anything_has_no_readers(control, clock):
    with reading_log(control, "verify", clock) as reading:
        assert reading.take_up().manifest is None
        assert control.log_head().version == 0


def test_two_readers_at_once_do_not_disturb_each_other(control, consensus: RacingConsensus, clock):
    publish(control, "one")
    first, second = Reading(control, "first", clock), Reading(control, "second", clock)
    consensus.before_next_commit = second.take_up
    first.take_up()
    assert opened(control, clock) == [("one",), ("one",)]
    first.release()
    assert [reader.who.split()[0] for reader in readers(control, clock.now)] == ["second"]


def test_what_a_reader_opens_was_the_log_when_it_said_so(control, consensus: RacingConsensus, clock):
    publish(control, "one")
    consensus.before_next_commit = lambda: publish(control, "two")
    assert Reading(control, "verify", clock).take_up().manifest == "two"
    assert opened(control, clock) == [("two",)]


def test_a_reader_that_died_is_forgotten_after_its_time(control, clock):
    publish(control, "one")
    Reading(control, "dead", clock).take_up()
    clock.pass_seconds(TERM / SECOND)
    assert readers(control, clock.now) == []
    publish(control, "two")
    Reading(control, "next", clock).take_up()
    assert [reader.who.split()[0] for reader in readers(control, 0)] == ["next"]


def test_a_reader_that_was_prolonged_meanwhile_is_not_forgotten(control, consensus, clock):
    publish(control, "one")
    slow = Reading(control, "slow", clock)
    slow.take_up()
    clock.pass_seconds(TERM / SECOND)
    consensus.before_next_commit = slow.renew
    Reading(control, "next", clock).take_up()
    assert [reader.who.split()[0] for reader in readers(control, clock.now)].count("slow") == 1


class CountedConsensus(MemoryConsensus):
    """Counts what costs more with every reader that ended: rows ever written or removed, range scans."""

    def __init__(self) -> None:
        super().__init__()
        self.written: set[str] = set()
        self.removed: list[str] = []
        self.scans = 0

    def commit(self, key: ObjectKey, expected: int, change: Change) -> int:
        self.written.update(change.puts)
        self.removed += [*change.deletes, *(str(one) for one in change.ranges)]
        return super().commit(key, expected, change)

    def scan(self, key: ObjectKey, prefix: str, **limits: Any) -> Snapshot:
        self.scans += 1
        return super().scan(key, prefix, **limits)


def test_readers_one_after_another_overwrite_one_row(clock):
    consensus = CountedConsensus()
    control = LogControl(consensus, "orders")
    for number in range(50):
        publish(control, f"manifest {number}")
        with reading_log(control, f"round {number}", clock) as reading:
            reading.take_up()
            reading.renew()
    assert (consensus.written, consensus.removed, consensus.scans) == ({"head", "readers"}, [], 0)
    assert consensus.read(ObjectKey(ObjectKind.LOG, "orders"), ["readers"]).rows == {"readers": "[]"}


def test_a_reader_of_an_earlier_version_counts_until_its_deadline(control, clock):
    publish(control, "one")
    row = {"name": "abc", "who": "delivery", "manifests": ["one"], "deadline": clock.now + TERM}
    control.amend_log(["head"], lambda _: (Change({"reader/abc": json.dumps(row)}), None))
    publish(control, "two")
    Reading(control, "next", clock).take_up()
    assert opened(control, clock) == [("one",), ("two",)]
    clock.pass_seconds(TERM / SECOND)
    assert opened(control, clock) == []


def test_a_reader_that_lives_says_so(control):
    publish(control, "one")
    said = Event()

    class Watched(LogControl):
        def amend_log(self, rows, decide, patience=None):
            found = super().amend_log(rows, decide, patience)
            said.set()
            return found

    with reading_log(Watched(control._consensus, "orders"), "verify", every=0.001) as reading:
        reading.take_up()
        said.clear()
        assert said.wait(10)
