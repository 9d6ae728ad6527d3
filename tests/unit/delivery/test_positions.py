"""Positions: registered once, moved forward only, and by one at a time."""

import pytest

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Kind, ObjectKey, Outpaced
from tidemark.delivery.positions import Gate, Positions, ShapeChanged, WriterState
from tidemark.errors import TidemarkError

pytestmark = pytest.mark.unit

SHAPE = {"kind": "files", "path": "/archive", "namespaces": ".*"}


@pytest.fixture
def consensus() -> MemoryConsensus:
    return MemoryConsensus()


@pytest.fixture
def positions(consensus) -> Positions:
    return Positions(consensus, "orders")


def test_a_writer_that_was_never_registered_has_no_state(positions):
    assert positions.load("archive") is None


def test_a_new_writer_has_finished_nothing_and_is_open(positions):
    assert positions.register("archive", SHAPE) == WriterState(
        pipeline="orders", name="archive", version=1, position=-1, gate=Gate.OPEN, reason=None, shape=SHAPE
    )


def test_a_new_writer_may_start_later(positions):
    assert positions.register("archive", SHAPE, position=41).position == 41


def test_a_registered_writer_is_loaded_as_it_was_registered(positions):
    registered = positions.register("archive", SHAPE)
    assert positions.load("archive") == registered


def test_registering_twice_changes_nothing(positions):
    first = positions.register("archive", SHAPE)
    assert positions.register("archive", SHAPE) == first


def test_registering_again_keeps_the_position(positions):
    positions.commit(positions.register("archive", SHAPE), 7)
    assert positions.register("archive", SHAPE, position=0).position == 7


def test_two_that_register_at_once_both_get_the_writer(consensus, positions, monkeypatch):
    load, others = positions.load, []

    def load_before_the_other_registers(writer):
        found = load(writer)
        if not others:
            others.append(Positions(consensus, "orders").register(writer, SHAPE))
        return found

    monkeypatch.setattr(positions, "load", load_before_the_other_registers)
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
    assert issubclass(ShapeChanged, TidemarkError)


# Moving


def test_a_position_moves_forward(positions):
    state = positions.commit(positions.register("archive", SHAPE), 7)
    assert (state.position, state.version) == (7, 2)
    assert positions.load("archive") == state


def test_a_position_moves_step_by_step(positions):
    state = positions.register("archive", SHAPE)
    for position in (3, 4, 100):
        state = positions.commit(state, position)
    assert positions.load("archive").position == 100


def test_a_position_may_stay(positions):
    state = positions.commit(positions.register("archive", SHAPE), 7)
    assert positions.commit(state, 7).position == 7


def test_a_position_does_not_go_back(positions):
    state = positions.commit(positions.register("archive", SHAPE), 7)
    with pytest.raises(ValueError, match="orders/archive: 6 is behind the position 7"):
        positions.commit(state, 6)
    assert positions.load("archive").position == 7


def test_a_stale_state_is_outpaced(positions):
    stale = positions.register("archive", SHAPE)
    positions.commit(stale, 7)
    with pytest.raises(Outpaced) as refusal:
        positions.commit(stale, 9)
    assert refusal.value.key == ObjectKey(Kind.WRITER, "orders/archive")
    assert positions.load("archive").position == 7


def test_a_commit_keeps_everything_else(positions):
    state = positions.commit(positions.register("archive", SHAPE), 7)
    assert (state.gate, state.reason, state.shape) == (Gate.OPEN, None, SHAPE)


def test_writers_do_not_touch(positions):
    positions.commit(positions.register("archive", SHAPE), 7)
    assert positions.register("cassandra", {"kind": "journal"}).position == -1


def test_pipelines_do_not_touch(consensus, positions):
    positions.commit(positions.register("archive", SHAPE), 7)
    assert Positions(consensus, "invoices").load("archive") is None
