"""The output of a collection: its rendition, its frontier, and what freezes it."""

import pytest
from tests.support.faults import Killed, at_point
from tests.support.log_samples import compact
from tests.support.memory_collection import CollectionWorld, given_declared

from tidemark.delivery.compacted_history import HistoryCompacted, refusal_of
from tidemark.delivery.renditions import declared
from tidemark.delivery.renditions.errors import OutputLeftOver
from tidemark.delivery.state.positions import ShapeChanged
from tidemark.delivery.state.writer_state import Cause
from tidemark.faults import FaultPoint
from tidemark.outputs.model.rendition import RenditionState

pytestmark = pytest.mark.unit

CLOCK = {"function": {"path": "tests.support.collection_samples.with_time"}}
SEEN = {"owner": "text", "balance": "int", "seen": "bigint"}


@pytest.fixture
def world(tmp_path):
    return CollectionWorld(tmp_path)


def gate_of(world):
    gate = world.gate(world.started())
    assert gate is not None
    return gate


def test_registration_makes_the_first_rendition(world):
    world.publish_records("a=1")
    world.deliver(world.started())
    (rendition,) = world.found.renditions
    assert (rendition.number, rendition.state) == (1, RenditionState.ACTIVE)
    assert (rendition.place, rendition.since) == ("collections.accounts", 0)
    assert rendition.settings["shape"]["columns"] == [["owner", "text"], ["balance", "int"]]
    assert rendition.code == {}


def test_the_frontier_follows_what_is_finished(world):
    first = world.publish_records("a=1")
    world.deliver(world.started())
    upper = world.control.bindings_head().upper
    assert first.t < world.found.frontier == upper
    second = world.publish_records("a=2 b=x")
    world.deliver(world.started())
    assert world.found.frontier == second.t
    world.resume(world.started())
    world.acknowledge(world.started(), 2, untried=False)
    world.deliver(world.started())
    assert world.found.frontier == world.control.bindings_head().upper > second.t


def test_the_frontier_advances_also_where_nothing_was_delivered(world):
    world.publish_records("a=1")
    world.deliver(world.started())
    head = world.control.bindings_head()
    world.control.advance_upper(head, head.upper + 5_000)
    world.deliver(world.started())
    assert world.found.frontier == head.upper + 5_000


def test_a_resume_advances_the_frontier(world):
    binding = world.publish_records("a=1 b=2")

    def fails(done):
        if done == 1:
            raise ConnectionError("no answer")

    world.deliver(world.started(fails))
    assert world.found.frontier == binding.t
    world.resume(world.started())
    assert world.found.frontier > binding.t


def test_a_rewind_moves_no_frontier_back(world):
    world.publish_records("a=1")
    world.deliver(world.started())
    frontier = world.found.frontier
    world.rewind("accounts", -1)

    def fails(done):
        raise ConnectionError("no answer")

    world.deliver(world.started(fails))
    assert world.position(world.started()) == -1
    assert world.found.frontier == frontier


def test_settings_that_change_the_rows_are_refused(world):
    world.publish_records("a=1")
    world.deliver(world.started())
    world.publish_records("a=2")
    with pytest.raises(ShapeChanged, match="shards was 4 and is now 5"):
        world.deliver(world.started(shards=5))


def test_a_forgotten_writers_name_is_not_used_again(world):
    world.publish_records("a=1")
    world.deliver(world.started())
    world.operator.forget("accounts", []).execute(world.deed("forget"))
    with pytest.raises(OutputLeftOver, match="Give the writer another name"):
        world.deliver(world.started())
    assert world.positions.load("accounts") is None


REGISTER = [FaultPoint.REGISTER_ENROLLED, FaultPoint.REGISTER_REGISTERED, FaultPoint.RENDITION_CREATED]


@pytest.mark.parametrize("point", REGISTER)
def test_29_a_registration_that_was_killed_is_finished_by_the_next_run(world, monkeypatch, point):
    binding = world.publish_records("a=1")
    assert at_point(monkeypatch, point, world.die) == []
    with pytest.raises(Killed):
        world.deliver(world.started())
    world.live_again()
    assert world.collection.rows == []
    world.deliver(world.started())
    assert world.position(world.started()) == binding.end
    assert [one.since for one in world.found.renditions] == [0]


# Computing again


def given_delivered(world, *bindings):
    made = [world.publish_records(words) for words in bindings]
    world.deliver(world.started())
    return made


@pytest.fixture
def clocked(tmp_path):
    """A collection whose transform reads a clock."""
    return CollectionWorld(tmp_path, transforms=[CLOCK], columns=SEEN)


def assert_tainted(world, t):
    rendition = world.found.rendition(1)
    assert rendition.state is RenditionState.TAINTED
    assert rendition.taint is not None
    assert rendition.taint.t == t
    gate = gate_of(world)
    assert gate.cause is Cause.TAINTED
    for text in (f"time {t}", rendition.taint.committed, rendition.taint.found, "tests.support"):
        assert text in gate.reason


@pytest.mark.parametrize("again", ["deliver again", "rewind", "resume after a rewind"])
def test_51_rows_that_would_differ_are_not_written_and_freeze_the_rendition(clocked, again):
    first, _ = given_delivered(clocked, "a=1", "a=2")
    rows, digests, frontier = clocked.collection.rows, clocked.digests, clocked.found.frontier
    if again == "deliver again":
        assert "gave others" in (clocked.deliver_again(clocked.started()).failure or "")
    elif again == "rewind":
        clocked.rewind("accounts", -1)
        clocked.deliver(clocked.started())
    else:
        clocked.rewind("accounts", -1)
        clocked.operator.stop("accounts").execute(clocked.deed("stop"))
        state = clocked.state(clocked.started())
        clocked.positions.commit(state, -1, None, _through(state.gate, 1))
        clocked.resume(clocked.started())
    assert_tainted(clocked, first.t)
    assert (clocked.collection.rows, clocked.digests) == (rows, digests)
    clocked.publish_records("a=3")
    clocked.operator.open("accounts").execute(clocked.deed("open"))
    clocked.deliver(clocked.started())
    assert gate_of(clocked).cause is Cause.TAINTED
    assert clocked.found.frontier == frontier
    assert clocked.resume(clocked.started()).gate is not None


def _through(gate, through):
    from dataclasses import replace

    return replace(gate, cause=Cause.TARGET, through=through)


def test_50_rows_that_are_the_same_are_written_again(world):
    given_delivered(world, "a=1 b=2", "a=3")
    rows = world.collection.rows
    writer = world.started()
    assert world.deliver_again(writer).failure is None
    assert writer.memory.written == 3
    assert world.collection.rows == rows
    assert world.found.rendition(1).taint is None


def test_a_message_that_cannot_be_computed_again_writes_nothing(tmp_path, monkeypatch):
    world = CollectionWorld(tmp_path)
    given_delivered(world, "a=1 b=2")
    writer = world.started()
    original = writer.trial()
    object.__setattr__(original, "declared", given_declared(columns={"balance": "uuid"}))
    monkeypatch.setattr(type(writer), "trial", lambda self: original)
    done = world.deliver_again(writer)
    assert "id 0" in (done.failure or "")
    assert writer.memory.written == 0


def test_other_code_stops_the_writer_and_the_earlier_code_lets_it_go_on(clocked, monkeypatch):
    given_delivered(clocked, "a=1")
    (module,) = [name for name in clocked.found.rendition(1).code if name.endswith("collection_samples")]
    code = dict(clocked.found.rendition(1).code)
    binding = clocked.publish_records("a=2")
    with monkeypatch.context() as patch:
        patch.setattr(declared, "_digests", lambda modules: {**code, module: "other"})
        clocked.deliver(clocked.started())
        gate = gate_of(clocked)
        assert (gate.cause, gate.through) == (Cause.CODE, 0)
        assert module in gate.reason
        assert clocked.resume(clocked.started()).gate is not None
        assert clocked.collection.ids == [0]
    clocked.resume(clocked.started())
    assert clocked.gate(clocked.started()) is None
    clocked.deliver(clocked.started())
    assert clocked.position(clocked.started()) == binding.end


# A compacted log


def given_compacted(world, policy="latest"):
    world.publish_records("a=1 b=2")
    world.publish_records("a=3 c=4")
    compact(world.control, world.log.folder, 2, keep=lambda id_: id_ != 0, policy=policy)


def test_a_collection_may_begin_with_what_policy_latest_left(world):
    given_compacted(world)
    world.deliver(world.started())
    assert world.collection.state() == {"a": 3, "b": 2, "c": 4}
    assert world.found.rendition(1).since == 2_000
    assert refusal_of("orders", world.started().declared, 2) is None


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"envelope": "append", "key": {"message": "bigint"}}, "envelope `append`"),
        (
            {"transforms": [{"skip": {"field": "balance", "operator": ">", "match": 1}}]},
            r"transform 1 \(`skip`\) can drop a message",
        ),
    ],
    ids=["append", "skip"],
)
def test_a_collection_that_needs_every_message_is_refused(tmp_path, keys, why):
    world = CollectionWorld(tmp_path, **keys)
    given_compacted(world)
    with pytest.raises(HistoryCompacted, match=why):
        world.deliver(world.started())
    assert world.positions.load("accounts") is None
    assert refusal_of("orders", world.started().declared, 2) is not None


def test_a_skip_that_deletes_drops_no_message(tmp_path):
    then = {"skip": {"field": "balance", "operator": ">", "match": 1, "then": "delete"}}
    world = CollectionWorld(tmp_path, transforms=[then])
    given_compacted(world)
    world.deliver(world.started())
    assert world.collection.state() == {"a": 3, "b": 2, "c": 4}


def test_another_policy_is_refused(world):
    given_compacted(world, "progress")
    with pytest.raises(HistoryCompacted, match=r"another policy than `latest` \(progress\)"):
        world.deliver(world.started())


def test_below_what_is_compacted_nothing_is_delivered_again(world):
    given_delivered(world, "a=1 b=2", "a=3 c=4")
    compact(world.control, world.log.folder, 2, keep=lambda id_: id_ != 0, policy="latest")
    with pytest.raises(HistoryCompacted, match="digests"):
        world.deliver_again(world.started(), 0, 1_000)
    with pytest.raises(HistoryCompacted):
        world.operator.rewind("accounts", -1, world.started())
    world.publish_records("d=5")
    world.deliver(world.started())
    assert world.collection.state() == {"a": 3, "b": 2, "c": 4, "d": 5}
