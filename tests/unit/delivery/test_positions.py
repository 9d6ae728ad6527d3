"""Writers in the control plane: registered once, moved forward only, and by one at a time."""

from dataclasses import replace

import pytest

from tidemark.consensus.lease import Lease
from tidemark.consensus.objects import ObjectKey, ObjectKind, Outpaced
from tidemark.delivery.state.positions import Positions, ShapeChanged
from tidemark.delivery.state.writer_state import (
    Cause,
    Gate,
    OffsetEntry,
    OffsetEntryKind,
    WriterGate,
    WriterState,
)

pytestmark = pytest.mark.unit

SHAPE = {"kind": "files", "path": "/archive", "namespaces": ".*"}
STOPPED = WriterGate(Cause.MESSAGE, 8, 8, 15, "it makes no sense", at=5_000)


def commit_of(position: int, **namespaces: int) -> OffsetEntry:
    return OffsetEntry(OffsetEntryKind.COMMIT, position, 1_000, "run-1", namespaces=namespaces)


def move(positions: Positions, state: WriterState, position: int) -> WriterState:
    return positions.commit(state, position, commit_of(position))


# Registration


def test_a_writer_that_was_never_registered_has_no_state(positions):
    assert positions.load("archive") is None


def test_a_new_writer_has_finished_nothing_and_is_open_and_free(positions):
    state = positions.register("archive", SHAPE)
    assert state == WriterState("orders", "archive", version=1, position=-1, shape=SHAPE, since=0)
    assert (state.status, state.gate, state.lease) == (Gate.OPEN, None, None)


def test_a_new_writer_may_start_later(positions):
    assert positions.register("archive", SHAPE, position=41).position == 41


def test_a_registered_writer_is_loaded_as_it_was_registered(positions):
    registered = positions.register("archive", SHAPE)
    assert positions.load("archive") == registered


def test_registering_twice_changes_nothing(positions):
    first = positions.register("archive", SHAPE)
    assert positions.register("archive", SHAPE) == first


def test_registering_again_keeps_the_position(positions):
    move(positions, positions.register("archive", SHAPE), 7)
    assert positions.register("archive", SHAPE, position=0).position == 7


def test_registering_again_keeps_the_gate(positions):
    positions.commit(positions.register("archive", SHAPE), 7, None, STOPPED)
    assert positions.register("archive", SHAPE).gate.first_id == 8


def test_two_that_register_at_once_both_get_the_writer(consensus, positions, monkeypatch):
    look, others = positions.load_version, []

    def look_before_the_other_registers(writer):
        found = look(writer)
        if not others:
            others.append(Positions(consensus, "orders").register(writer, SHAPE))
        return found

    monkeypatch.setattr(positions, "load_version", look_before_the_other_registers)
    assert positions.register("archive", SHAPE) == others[0]


# Shape


def test_a_changed_setting_is_refused_by_name_and_values(positions):
    positions.register("archive", SHAPE)
    with pytest.raises(ShapeChanged) as refusal:
        positions.register("archive", SHAPE | {"path": "/elsewhere"})
    error = refusal.value
    assert (error.pipeline, error.writer) == ("orders", "archive")
    assert error.changed == {"path": ("/archive", "/elsewhere")}
    assert str(error).startswith(
        "orders/archive: path was '/archive' and is now '/elsewhere'. Nothing was delivered"
    )


def test_every_changed_setting_is_named(positions):
    positions.register("archive", SHAPE)
    with pytest.raises(ShapeChanged, match=r"namespaces was .* and is now .*, path was .* and is now"):
        positions.register("archive", {"kind": "files", "path": "/b", "namespaces": "a"})


@pytest.mark.parametrize(
    ("shape", "changed"),
    [
        pytest.param(SHAPE | {"format": "jsonl"}, {"format": (None, "jsonl")}, id="a new setting"),
        pytest.param({"kind": "files", "path": "/archive"}, {"namespaces": (".*", None)}, id="one is gone"),
    ],
)
def test_settings_that_come_or_go_are_changes(positions, shape, changed):
    positions.register("archive", SHAPE)
    with pytest.raises(ShapeChanged) as refusal:
        positions.register("archive", shape)
    assert refusal.value.changed == changed


def test_a_refused_shape_leaves_the_writer_as_it_was(positions):
    before = positions.register("archive", SHAPE)
    with pytest.raises(ShapeChanged):
        positions.register("archive", SHAPE | {"path": "/elsewhere"})
    assert positions.load("archive") == before


def test_a_changed_shape_is_for_a_person():
    assert ShapeChanged.needs_person


# Moving


def test_a_position_moves_forward(positions):
    state = move(positions, positions.register("archive", SHAPE), 7)
    assert (state.position, state.version) == (7, 2)
    assert positions.load("archive") == state


def test_a_position_moves_step_by_step(positions):
    state = positions.register("archive", SHAPE)
    for position in (3, 4, 100):
        state = move(positions, state, position)
    assert positions.load("archive").position == 100


def test_a_position_may_stay(positions):
    state = move(positions, positions.register("archive", SHAPE), 7)
    assert positions.commit(state, 7, None).position == 7


def test_a_position_does_not_go_back(positions):
    state = move(positions, positions.register("archive", SHAPE), 7)
    with pytest.raises(ValueError, match="orders/archive: 6 is behind the position 7"):
        move(positions, state, 6)
    assert positions.load("archive") == state


def test_a_stale_state_is_outpaced(positions):
    stale = positions.register("archive", SHAPE)
    move(positions, stale, 7)
    with pytest.raises(Outpaced) as refusal:
        move(positions, stale, 9)
    assert refusal.value.key == ObjectKey(ObjectKind.WRITER, "orders/archive")
    assert positions.load("archive").position == 7


def test_a_commit_keeps_the_shape(positions):
    assert move(positions, positions.register("archive", SHAPE), 7).shape == SHAPE


def test_writers_do_not_touch(positions):
    move(positions, positions.register("archive", SHAPE), 7)
    assert positions.register("cassandra", {"kind": "journal"}).position == -1


def test_pipelines_do_not_touch(consensus, positions):
    move(positions, positions.register("archive", SHAPE), 7)
    assert Positions(consensus, "invoices").load("archive") is None


# The gate


def test_a_gate_closes_with_the_version_it_was_closed_at(positions):
    state = positions.commit(positions.register("archive", SHAPE), 7, commit_of(7), STOPPED)
    assert state.gate == replace(STOPPED, version=2)
    assert (state.status, state.version) == (Gate.STOPPED, 2)


def test_a_closed_gate_is_loaded_as_it_was_closed(positions):
    state = positions.commit(positions.register("archive", SHAPE), 7, commit_of(7), STOPPED)
    assert positions.load("archive") == state


def test_a_gate_that_stays_closed_is_the_same_closing(positions):
    state = positions.commit(positions.register("archive", SHAPE), 7, None, STOPPED)
    assert positions.commit(state, 9, commit_of(9), state.gate).gate.version == 2


def test_a_gate_that_closes_again_is_another_closing(positions):
    state = positions.commit(positions.register("archive", SHAPE), 7, None, STOPPED)
    again = positions.commit(state, 7, None, state.gate.again(STOPPED))
    assert (again.gate.version, again.gate.failures) == (3, 2)


def test_a_commit_without_a_gate_opens_it(positions):
    state = positions.commit(positions.register("archive", SHAPE), 7, None, STOPPED)
    assert positions.commit(state, 7, None).gate is None


@pytest.mark.parametrize(
    ("newer", "failures"),
    [
        pytest.param(STOPPED, 2, id="the same message"),
        pytest.param(replace(STOPPED, first_id=9, last_id=9), 1, id="another message"),
        pytest.param(replace(STOPPED, last_id=9), 1, id="another range"),
        pytest.param(replace(STOPPED, cause=Cause.TARGET), 1, id="another cause"),
    ],
)
def test_failures_of_the_same_message_are_counted(newer, failures):
    assert STOPPED.again(newer).failures == failures


@pytest.mark.parametrize(("older", "newer"), [(15, 9), (9, 15)])
def test_a_gate_never_forgets_how_far_to_go_singly(older, newer):
    gate = replace(STOPPED, through=older).again(replace(STOPPED, through=newer))
    assert gate.through == 15


@pytest.mark.parametrize(("last", "where"), [(8, "id 8"), (15, "ids 8 to 15")])
def test_where_a_gate_is_closed_in_words(last, where):
    assert replace(STOPPED, last_id=last).where == where


# The lease


def test_a_lease_and_its_token_are_loaded_as_they_were_lent(positions):
    state = positions.lend(positions.register("archive", SHAPE), Lease("run-1", 4, 60))
    assert positions.load("archive") == state
    assert (state.lease, state.token) == (Lease("run-1", 4, 60), 4)


def test_a_token_outlives_its_lease(positions):
    state = positions.lend(positions.register("archive", SHAPE), Lease("run-1", 4, 60))
    state = positions.lend(state, None)
    assert (state.lease, state.token) == (None, 4)


@pytest.mark.parametrize(("now", "held"), [(59, True), (60, False), (61, False)])
def test_a_lease_is_held_until_its_deadline(positions, now, held):
    state = positions.lend(positions.register("archive", SHAPE), Lease("run-1", 1, 60))
    assert (state.held_at(now) is not None) == held
