"""Offset logs compacted in the control plane: positions, gates and leases stay as they were."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from tests.support.clocks import Clock
from tests.support.contracts.flaky_consensus import Fault, FlakyConsensus
from tests.support.fault_points import COMPACT_OFFSETS
from tests.support.faults import Killed
from tests.support.memory_writers import Stream
from tests.support.offset_samples import DEED, KEY, STOPPED, compact, entries, given_moves, move
from tests.support.pipeline_world import PipelineWorld

from tidemark.consensus.objects import Change, RowRange, Undecided
from tidemark.delivery.state import offset_log as module
from tidemark.delivery.state.lease import take
from tidemark.delivery.state.offset_log import WriterBusy, compact_writer, plan_writer
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import OffsetEntryKind

pytestmark = pytest.mark.unit


# What is left


def test_only_the_offset_log_is_changed(house: PipelineWorld):
    """Namespaces, acknowledgements, deeds, position and gate of a writer that had everything."""
    house.publish(orders="abc", refunds="de")
    writer = Stream(bad={3})
    house.deliver(writer)
    house.acknowledge(writer, 3)
    house.deliver(writer)
    house.rewind("stream", 1)
    writer.bad = set()
    house.resume(writer)
    house.deliver(writer)
    before = house.rows(writer)
    plan = plan_writer(house.positions, "stream")
    compact_writer(house.positions, plan)
    kept = {row: body for row, body in before.items() if not row.startswith("ack/") or row in plan.kept}
    assert plan.removed > 0
    assert house.rows(writer) == kept


def test_a_rewind_stays_as_a_record(positions):
    given_moves(positions, 3, 7, 9, 4, 5, 8)
    compact(positions)
    assert entries(positions) == [("rewind", 4), ("commit", 8)]


def test_a_closed_gate_is_the_same_closing_as_before(positions):
    state = given_moves(positions, 3, 7)
    closed = positions.commit(state, 7, None, STOPPED)
    compact(positions)
    assert positions.load("c0").gate == closed.gate


def test_a_long_log_is_read_in_pages(positions, monkeypatch):
    monkeypatch.setattr("tidemark.delivery.state.positions.PAGE", 3)
    given_moves(positions, *range(20))
    plan = plan_writer(positions, "c0")
    compact_writer(positions, plan)
    assert (plan.rows_before, entries(positions)) == (20, [("commit", 19)])


def test_it_is_one_range_in_one_transaction(positions, consensus, monkeypatch):
    given_moves(positions, *range(20))
    changes, commit = [], consensus.commit
    monkeypatch.setattr(consensus, "commit", lambda *args: changes.append(args[2]) or commit(*args))
    compact(positions)
    newest = next(positions.offset_rows("c0"))[0]
    assert changes == [Change(ranges=(RowRange("ack/", newest),))]


def test_a_log_with_many_rewinds_takes_transactions_of_bounded_size(positions, consensus, monkeypatch):
    monkeypatch.setattr(module, "MOST_RANGES", 2)
    given_moves(positions, *[5, 6, 7, 1] * 5)
    changes, commit = [], consensus.commit
    monkeypatch.setattr(consensus, "commit", lambda *args: changes.append(args[2]) or commit(*args))
    plan = plan_writer(positions, "c0")
    compact_writer(positions, plan, DEED)
    assert [(len(change.puts), len(change.ranges)) for change in changes] == [(1, 2), (0, 2), (0, 1)]
    assert entries(positions) == [("rewind", 1)] * 5
    assert positions.deeds("c0") == [DEED]


def test_what_a_person_does_is_kept_with_who_and_why(positions):
    given_moves(positions, 3, 7, 9)
    compact_writer(positions, plan_writer(positions, "c0"), DEED)
    assert positions.deeds("c0") == [DEED]


def test_where_nothing_goes_nothing_is_kept_either(positions):
    before = given_moves(positions, 3)
    compact_writer(positions, plan_writer(positions, "c0"), DEED)
    assert (positions.load("c0"), positions.deeds("c0")) == (before, [])


# While another process works


def test_a_held_writer_is_compacted_and_its_holder_goes_on(positions):
    given_moves(positions, 3, 7)
    hold = take(positions, positions.load("c0"), "run-1", Clock())
    hold.commit(9, {})
    compact(positions)
    assert positions.load("c0").lease == hold.state.lease
    hold.commit(12, {"orders": 12})
    hold.renew()
    hold.release()
    assert (positions.load("c0").position, entries(positions)) == (12, [("commit", 9), ("commit", 12)])


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_writer_that_commits_just_before_is_not_lost(consensus, times):
    """Its commit comes between what was read and the transaction; that is read again, and tried again."""
    positions = Positions(consensus, "orders")
    given_moves(positions, 3, 7)
    hold = take(positions, positions.load("c0"), "run-1", Clock())
    flaky, moves = FlakyConsensus(consensus), iter(range(100, 100 + times))

    def commit() -> None:
        if (position := next(moves, None)) is not None:
            hold.commit(position, {})

    plan = plan_writer(positions, "c0")
    flaky.meanwhile = commit
    compact_writer(Positions(flaky, "orders"), plan)
    assert entries(positions) == [("commit", 7), *(("commit", 100 + n) for n in range(times))]
    assert positions.load("c0").position == 99 + times
    hold.renew()


def test_a_writer_that_is_never_still_is_left_for_the_next_time(consensus):
    positions = Positions(consensus, "orders")
    given_moves(positions, 3, 7)
    hold = take(positions, positions.load("c0"), "run-1", Clock())
    flaky = FlakyConsensus(consensus)
    flaky.meanwhile = hold.renew
    with pytest.raises(WriterBusy) as refusal:
        compact_writer(Positions(flaky, "orders"), plan_writer(positions, "c0"))
    assert (refusal.value.pipeline, refusal.value.writer) == ("orders", "c0")
    assert entries(positions) == [("commit", 3), ("commit", 7)]


def test_many_commits_and_many_compactions_at_once_lose_nothing(positions):
    hold = take(positions, positions.register("c0", {}), "run-1", Clock())

    def commit_all() -> None:
        for position in range(300):
            hold.commit(position, {f"n{position % 3}": position})

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(commit_all)
        while not working.done():
            with suppress(WriterBusy):  # a writer without a target commits without a pause
                compact(positions)
        working.result()
    compact(positions)
    assert (positions.load("c0").position, entries(positions)) == (299, [("commit", 299)])
    assert positions.namespaces("c0") == {"n0": 297, "n1": 298, "n2": 299}


def test_a_rewind_between_plan_and_execution_stays(positions):
    state = given_moves(positions, 3, 7)
    plan = plan_writer(positions, "c0")
    move(positions, move(positions, state, 2, OffsetEntryKind.REWIND), 5)
    compact_writer(positions, plan)
    assert entries(positions) == [("commit", 7), ("rewind", 2), ("commit", 5)]


def test_two_that_do_the_same_plan_end_like_one(positions):
    given_moves(positions, 3, 7, 9)
    plan = plan_writer(positions, "c0")
    compact_writer(positions, plan)
    left = positions.load("c0")
    compact_writer(positions, plan, DEED)
    assert (positions.load("c0"), positions.deeds("c0")) == (left, [])


def test_a_writer_that_was_forgotten_meanwhile_stays_forgotten(positions, consensus):
    state = given_moves(positions, 3, 7, 9)
    plan = plan_writer(positions, "c0")
    positions.forget(state, DEED)
    version = consensus.read(KEY, []).version
    compact_writer(positions, plan)
    assert (positions.load("c0"), consensus.read(KEY, []).version) == (None, version)


# Lost answers


@pytest.mark.parametrize("fault", list(Fault))
def test_an_answer_that_got_lost_is_put_right_by_the_next_run(consensus, fault):
    positions = Positions(consensus, "orders")
    given_moves(positions, 3, 7, 4, 9)
    before = positions.load("c0")
    flaky = FlakyConsensus(consensus)
    flaky.arm(fault)
    with pytest.raises(Undecided):
        compact_writer(Positions(flaky, "orders"), plan_writer(positions, "c0"))
    flaky.land()
    compact(positions)
    assert entries(positions) == [("rewind", 4), ("commit", 9)]
    assert positions.load("c0").to_row() == before.to_row()


# Dying


@pytest.mark.parametrize("most", [1, 100], ids=["several transactions", "one transaction"])
@pytest.mark.parametrize("point", COMPACT_OFFSETS)
def test_what_was_killed_is_finished_by_the_next(positions, consensus, kill_at, monkeypatch, point, most):
    monkeypatch.setattr(module, "MOST_RANGES", most)
    given_moves(positions, 3, 7, 9, 4, 5, 8)
    before = consensus.scan(KEY, "").rows
    whole = plan_writer(positions, "c0").kept
    kill_at(point)
    with pytest.raises(Killed):
        compact(positions)
    compact(positions)
    kept = {row: body for row, body in before.items() if not row.startswith("ack/") or row in whole}
    assert consensus.scan(KEY, "").rows == kept


@pytest.mark.parametrize("point", COMPACT_OFFSETS)
def test_two_at_once_end_like_one(positions, at_point, point):
    given_moves(positions, 3, 7, 9, 4, 5, 8)
    before = positions.load("c0")
    at_point(point, lambda: compact(positions))
    compact(positions)
    assert entries(positions) == [("rewind", 4), ("commit", 8)]
    assert (positions.load("c0").to_row(), positions.load("c0").version) == (
        before.to_row(),
        before.version + 1,
    )
