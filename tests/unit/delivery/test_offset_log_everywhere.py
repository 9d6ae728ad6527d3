"""Offset logs that are not as they should be, those of all writers, and any history of one."""

import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.clocks import Clock
from tests.support.offset_samples import DEED, KEY, STOPPED, compact, entries, given_moves, move

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Change, RowRange
from tidemark.delivery.resume import NotRegistered
from tidemark.delivery.state.lease import take
from tidemark.delivery.state.offset_log import (
    OffsetLogWrong,
    choose_writers,
    compact_offsets,
    compact_writer,
    find_writers,
    plan_writer,
    verify_writer,
)
from tidemark.delivery.state.offset_log_plan import ack_row
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import OffsetEntryKind, WriterState

pytestmark = pytest.mark.unit


# Refusals


def put(consensus: MemoryConsensus, **change: object) -> None:
    consensus.commit(KEY, consensus.read(KEY, []).version, Change(**change))


def test_a_log_that_does_not_end_where_the_writer_stands_is_not_compacted(positions, consensus):
    given_moves(positions, 3, 7)
    put(consensus, deletes=[next(positions.offset_rows("c0"))[0]])
    with pytest.raises(OffsetLogWrong, match="it is at 7, and the newest entry of its offset log says 3"):
        plan_writer(positions, "c0")
    assert entries(positions) == [("commit", 3)]


def test_a_rewind_that_is_gone_afterwards_is_noticed(positions, consensus):
    given_moves(positions, 3, 7, 4, 9)
    plan = plan_writer(positions, "c0")
    compact_writer(positions, plan)
    put(consensus, deletes=[plan.kept[1]])
    with pytest.raises(OffsetLogWrong, match="entries that stay are gone"):
        verify_writer(positions, plan)


def test_an_entry_that_should_be_gone_is_noticed(positions):
    given_moves(positions, 3, 7, 9)
    with pytest.raises(OffsetLogWrong, match="entries that go are still there"):
        verify_writer(positions, plan_writer(positions, "c0"))


def test_a_log_that_is_gone_is_noticed(positions, consensus):
    given_moves(positions, 3, 7, 9)
    plan = plan_writer(positions, "c0")
    put(consensus, ranges=[RowRange("ack/", "ack0")])
    with pytest.raises(OffsetLogWrong, match="its offset log is gone"):
        verify_writer(positions, plan)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"deletes": ["ns/n0"]}, "has changed its namespaces", id="a namespace"),
        pytest.param({"deletes": ["acknowledged/x"]}, "its acknowledgements", id="an acknowledgement"),
        pytest.param({"deletes": ["audit/x"]}, "its deeds", id="a deed"),
    ],
)
def test_a_transaction_that_does_more_than_it_should_is_noticed(
    positions, consensus, monkeypatch, change, said
):
    """It cannot; should it ever, nothing goes on as if it had not."""
    given_moves(positions, 3, 7, 9)
    put(consensus, puts={"acknowledged/x": '{"ids": [4]}', "audit/x": json.dumps(asdict(DEED))})
    commit = consensus.commit

    def commit_more(key, expected, given):
        return commit(key, expected, replace(given, **change))

    plan = plan_writer(positions, "c0")
    monkeypatch.setattr(consensus, "commit", commit_more)
    with pytest.raises(OffsetLogWrong, match=said):
        compact_writer(positions, plan)


def test_a_newer_commit_after_the_plan_is_nothing_to_complain_about(positions):
    state = given_moves(positions, 3, 7, 9)
    plan = plan_writer(positions, "c0")
    compact_writer(positions, plan)
    move(positions, replace(state, version=state.version + 1), 12)
    compact(positions)
    verify_writer(positions, plan)


# All writers


@pytest.fixture
def three(consensus) -> MemoryConsensus:
    given_moves(Positions(consensus, "orders"), 3, 7, 9)
    given_moves(Positions(consensus, "orders"), 5, name="c1")
    given_moves(Positions(consensus, "orders-eu"), 3, 7, name="c0")
    retired = Positions(consensus, "orders")
    retired.forget(given_moves(retired, 3, 7, name="gone"), DEED)
    return consensus


def test_every_registered_writer_is_found(three):
    assert list(find_writers(three)) == [("orders", "c0"), ("orders", "c1"), ("orders-eu", "c0")]


def test_a_pipeline_s_writers_are_its_own(three):
    assert choose_writers(three, "orders") == [("orders", "c0"), ("orders", "c1")]
    assert choose_writers(three, "orders", "c1") == [("orders", "c1")]


@pytest.mark.parametrize(("pipeline", "writer"), [("orders", "gone"), ("orders", "c9"), ("invoices", "c0")])
def test_a_writer_that_is_not_registered_is_refused(three, pipeline, writer):
    with pytest.raises(NotRegistered, match=f"{pipeline} has no registered writer {writer}"):
        choose_writers(three, pipeline, writer)


def test_it_only_plans_unless_it_is_told_to_do_it(three):
    outcomes = compact_offsets(three, choose_writers(three, None))
    assert [(one.plan.rows_before, one.plan.rows_after, one.executed) for one in outcomes] == [
        (3, 1, False),
        (1, 1, False),
        (2, 1, False),
    ]
    assert len(entries(Positions(three, "orders"))) == 3


def test_every_writer_is_compacted(three):
    outcomes = compact_offsets(three, choose_writers(three, None), execute=True, deed=DEED)
    assert [one.executed for one in outcomes] == [True, False, True]
    assert entries(Positions(three, "orders")) == [("commit", 9)]
    assert entries(Positions(three, "orders-eu")) == [("commit", 7)]
    assert Positions(three, "orders").deeds("c1") == []


def test_one_writer_s_trouble_holds_up_no_other(three):
    put(three, deletes=[ack_row(4)])
    outcomes = compact_offsets(three, choose_writers(three, None), execute=True)
    assert [(one.executed, bool(one.failure)) for one in outcomes] == [
        (False, True),
        (False, False),
        (True, False),
    ]
    assert entries(Positions(three, "orders-eu")) == [("commit", 7)]


def test_an_outcome_is_one_line(three):
    put(three, deletes=[ack_row(4)])
    lines = [one.line for one in compact_offsets(three, choose_writers(three, None))]
    assert lines[0].startswith("orders/c0: it is at 9, and the newest entry of its offset log says 7.")
    assert lines[1] == "orders/c1: nothing to remove; entries: 1"
    assert lines[2].startswith("orders-eu/c0: entries 2 → 1; bytes ")


# Any history

STEPS = st.lists(
    st.sampled_from(
        ["commit", "commit", "commit", "rewind", "acknowledge", "stop", "open", "take", "compact"]
    ),
    max_size=40,
)


def take_steps(steps: list[str], compacts: bool) -> Positions:
    positions = Positions(MemoryConsensus(), "orders")
    positions.register("c0", {"kind": "files"})
    for number, step in enumerate(steps):
        state = positions.load("c0")
        if step == "compact":
            if compacts:
                compact(positions)
        elif step == "take":
            take(positions, replace(state, lease=None), f"run-{number}", Clock())
        elif step == "acknowledge":
            state = positions.acknowledge(state, [state.position + 1], "ann", state.lease)
            move(positions, state, state.position + 1, OffsetEntryKind.ACKNOWLEDGE)
        elif step == "rewind":
            move(positions, state, max(-1, state.position - 4), OffsetEntryKind.REWIND)
        elif step == "commit":
            move(positions, state, state.position + 1 + number % 3)
        else:
            gate = STOPPED if step == "stop" else None
            positions.commit(state, state.position, None, gate, state.lease, positions.audit_row(state, DEED))
    return positions


@given(STEPS)
@settings(deadline=None)
def test_G14_whatever_happens_a_compacted_log_loads_to_the_same(steps):
    compacted, whole = (take_steps(steps, compacts) for compacts in (True, False))
    ours, theirs = compacted.standing("c0"), whole.standing("c0")
    assert _timeless(ours.state) == _timeless(theirs.state)
    assert replace(ours, state=theirs.state) == theirs
    assert compacted.history("c0")[-1:] == whole.history("c0")[-1:]
    rewinds = [
        [e for e in one.history("c0") if e.kind is OffsetEntryKind.REWIND] for one in (compacted, whole)
    ]
    assert rewinds[0] == rewinds[1]


def _timeless(state: WriterState) -> WriterState:
    """Without versions: a compaction is one."""
    return replace(state, version=0, gate=replace(state.gate, version=0) if state.gate else None)
