"""Offset logs compacted in the control plane: positions, gates and leases are as before, whoever works on."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contract.flaky_consensus import Fault, FlakyConsensus
from tests.unit.delivery.samples import Clock, House, Killed, Stream

from tidemark import faults
from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Change, Kind, ObjectKey, RowRange, Undecided
from tidemark.delivery import compact_offsets as module
from tidemark.delivery.compact_offsets import (
    OffsetLogWrong,
    WriterBusy,
    choose_writers,
    compact_offsets,
    compact_writer,
    plan_writer,
    registered_writers,
    verify_writer,
)
from tidemark.delivery.lease import take
from tidemark.delivery.offset_plan import ack_row
from tidemark.delivery.positions import Positions
from tidemark.delivery.resume import NotRegistered
from tidemark.delivery.writer_state import Cause, Deed, Entry, OffsetEntry, WriterGate, WriterState
from tidemark.faults import VARIABLE, FaultPoint

pytestmark = pytest.mark.unit

COMPACT_OFFSETS = [FaultPoint.OFFSETS_PLANNED, FaultPoint.OFFSETS_COMPACTED]
KEY = ObjectKey(Kind.WRITER, "orders/c0")
STOPPED = WriterGate(Cause.MESSAGE, 8, 8, 15, "it makes no sense", at=5_000)
DEED = Deed("compact offsets", "ann", "too long", 9_000)


@pytest.fixture
def consensus() -> MemoryConsensus:
    return MemoryConsensus()


@pytest.fixture
def positions(consensus) -> Positions:
    return Positions(consensus, "orders")


def move(positions: Positions, state: WriterState, position: int, kind: Entry = Entry.COMMIT) -> WriterState:
    entry = OffsetEntry(kind, position, 1_000, "run-1", namespaces={f"n{position % 3}": position})
    return positions.commit(state, position, entry, state.gate, state.lease)


def given_moves(positions: Positions, *moves: int, name: str = "c0") -> WriterState:
    """A writer that went to these positions, back where one is smaller."""
    state = positions.register(name, {"kind": "files"})
    for position in moves:
        back = position < state.position
        state = move(positions, state, position, Entry.REWIND if back else Entry.COMMIT)
    return state


def entries(positions: Positions, name: str = "c0") -> list[tuple[str, int]]:
    return [(entry.kind.value, entry.position) for entry in positions.history(name)]


def compact(positions: Positions, name: str = "c0") -> None:
    compact_writer(positions, plan_writer(positions, name))


# What is left


def test_only_the_offset_log_is_changed(house: House):
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
    monkeypatch.setattr("tidemark.delivery.positions.PAGE", 3)
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


# Somebody works meanwhile


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
            compact(positions)
        working.result()
    compact(positions)
    assert (positions.load("c0").position, entries(positions)) == (299, [("commit", 299)])
    assert positions.namespaces("c0") == {"n0": 297, "n1": 298, "n2": 299}


def test_a_rewind_between_plan_and_execution_stays(positions):
    state = given_moves(positions, 3, 7)
    plan = plan_writer(positions, "c0")
    move(positions, move(positions, state, 2, Entry.REWIND), 5)
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


@pytest.fixture
def at_point(monkeypatch) -> Callable[[FaultPoint, Callable[[], None]], None]:
    """Let something happen when a point is reached for the first time."""

    def arm(point: FaultPoint, happen: Callable[[], None]) -> None:
        def die(_: FaultPoint) -> None:
            monkeypatch.delenv(VARIABLE)
            happen()

        monkeypatch.setenv(VARIABLE, point)
        monkeypatch.setattr(faults, "die", die)

    return arm


def kill() -> None:
    raise Killed


@pytest.mark.parametrize("most", [1, 100], ids=["several transactions", "one transaction"])
@pytest.mark.parametrize("point", COMPACT_OFFSETS)
def test_what_was_killed_is_finished_by_the_next(positions, consensus, at_point, monkeypatch, point, most):
    monkeypatch.setattr(module, "MOST_RANGES", most)
    given_moves(positions, 3, 7, 9, 4, 5, 8)
    before = consensus.scan(KEY, "").rows
    whole = plan_writer(positions, "c0").kept
    at_point(point, kill)
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
    put(consensus, puts={"acknowledged/x": '{"ids": [4]}', "audit/x": f"{asdict(DEED)}".replace("'", '"')})
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
    assert list(registered_writers(three)) == [("orders", "c0"), ("orders", "c1"), ("orders-eu", "c0")]


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
            move(positions, state, state.position + 1, Entry.ACKNOWLEDGE)
        elif step == "rewind":
            move(positions, state, max(-1, state.position - 4), Entry.REWIND)
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
    rewinds = [[e for e in one.history("c0") if e.kind is Entry.REWIND] for one in (compacted, whole)]
    assert rewinds[0] == rewinds[1]


def _timeless(state: WriterState) -> WriterState:
    """Without versions: a compaction is one."""
    return replace(state, version=0, gate=replace(state.gate, version=0) if state.gate else None)
