"""The output in the control plane: created once, changed by what differs, whatever gets lost."""

from dataclasses import replace

import pytest
from tests.support.consensus import RacingConsensus, RecordingConsensus
from tests.support.contracts.flaky_consensus import Fault, FlakyConsensus
from tests.support.output_samples import signed
from tests.support.output_store_world import FIRST, OutputStoreWorld

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import ObjectKind, Undecided
from tidemark.outputs.errors import CreatedOtherwise, OutputDamaged, OutputMissing, ReasonMissing
from tidemark.outputs.model.lifecycle import abandon
from tidemark.outputs.model.output import Output
from tidemark.outputs.model.rendition import Signature

pytestmark = pytest.mark.unit


# creating


def test_before_its_first_rendition_there_is_no_output():
    store = OutputStoreWorld().store
    assert store.load() is None
    for use in (store.require, store.frontier, lambda: store.change(lambda output: output)):
        with pytest.raises(OutputMissing):
            use()


def test_the_first_rendition_is_active_from_its_since_on():
    store = OutputStoreWorld().store
    output = store.create(replace(FIRST, since=7))
    assert (output.frontier, output.active.number, output.handovers[0].h) == (7, 1, 7)
    assert store.load() == output


def test_the_frontier_is_read_without_the_rest():
    world = OutputStoreWorld.handed_over()
    assert world.store.frontier() == world.output.frontier


def test_creating_again_changes_nothing():
    world = OutputStoreWorld(RecordingConsensus())
    first = world.store.create(FIRST)
    assert world.store.create(replace(FIRST, signed=signed(9))) == first
    assert len(world.consensus.changes) == 1


def test_two_creators_at_once_with_the_same_settings_get_the_same_output():
    world = OutputStoreWorld(RacingConsensus())
    other: list[Output] = []
    world.consensus.before_next_commit = lambda: other.append(world.store.create(FIRST))
    assert [world.store.create(replace(FIRST, signed=signed(9)))] == other
    assert world.output.active.signed == FIRST.signed


@pytest.mark.parametrize(
    ("differing", "said"),
    [
        ({"settings": {"writer": {"shards": 4}}}, "settings.writer.shards was 8 and is now 4"),
        ({"code": {"shop": "7f3a"}}, "code was {} and is now None; code.shop was None and is now '7f3a'"),
        ({"place": "elsewhere"}, "place was 'accounts' and is now 'elsewhere'"),
    ],
    ids=["settings", "code", "place"],
)
def test_a_creator_with_other_settings_is_refused_and_told_what_differs(differing, said):
    world = OutputStoreWorld(RacingConsensus())
    world.consensus.before_next_commit = lambda: world.store.create(FIRST)
    with pytest.raises(CreatedOtherwise) as refusal:
        world.store.create(replace(FIRST, **differing))
    assert refusal.value.what == said
    assert world.output.active.settings == FIRST.settings


def test_settings_that_json_cannot_tell_apart_do_not_differ():
    world = OutputStoreWorld()
    world.store.create(replace(FIRST, settings={"namespaces": ("a", "b")}))
    world.store.create(replace(FIRST, settings={"namespaces": ["a", "b"]}))


def test_a_creator_without_a_reason_is_refused():
    world = OutputStoreWorld()
    with pytest.raises(ReasonMissing):
        world.store.create(replace(FIRST, signed=Signature("ann", "", 1)))
    assert world.store.load() is None


@pytest.mark.parametrize("fault", Fault)
def test_statement_29_what_was_created_without_an_answer_is_found_by_the_next_attempt(fault):
    flaky = FlakyConsensus(MemoryConsensus())
    world = OutputStoreWorld(flaky)
    flaky.arm(fault)
    with pytest.raises(Undecided):
        world.store.create(FIRST)
    made = world.store.create(FIRST)
    flaky.land()
    assert world.output == made


# changing


def test_a_change_writes_the_rows_that_differ_and_no_other():
    world = OutputStoreWorld.begun(RecordingConsensus())
    world.declare()
    kind, change = world.consensus.changes[-1]
    assert (kind, sorted(change.puts)) == (ObjectKind.OUTPUT, ["head", "rendition/00000000000000000002"])
    assert (list(change.deletes), list(change.ranges)) == ([], [])


def test_a_change_of_nothing_is_not_committed():
    world = OutputStoreWorld.begun(RecordingConsensus())
    before = len(world.consensus.changes)
    assert world.store.change(lambda output: output) == world.output
    assert len(world.consensus.changes) == before


def test_a_refused_change_leaves_the_output_as_it_was():
    world = OutputStoreWorld.begun()
    before = world.output
    with pytest.raises(ZeroDivisionError):
        world.store.change(lambda output: 1 // 0)
    assert world.output == before


def test_a_change_that_was_outpaced_is_decided_again_on_the_new_output():
    world = OutputStoreWorld.begun(RacingConsensus())
    first, second = world.declare(), world.declare()
    world.consensus.before_next_commit = lambda: world.store.change(lambda o: abandon(o, first, signed(5)))
    seen = []

    def decide(output: Output) -> Output:
        seen.append(str(output.rendition(first).state))
        return abandon(output, second, signed(6))

    world.store.change(decide)
    assert seen == ["building", "abandoned"]
    assert world.states == {1: "active", 2: "abandoned", 3: "abandoned"}


def test_a_damaged_output_is_refused_and_not_overwritten():
    world = OutputStoreWorld.begun()
    held = world.consensus._objects[world.store.key]
    del held.rows["head"]
    for use in (world.store.load, world.store.require, lambda: world.store.create(FIRST)):
        with pytest.raises(OutputDamaged):
            use()


def test_outputs_of_different_writers_and_pipelines_are_apart():
    one, other = OutputStoreWorld(), OutputStoreWorld()
    other.consensus = one.consensus
    one.store.create(FIRST)
    assert (one.output.pipeline, other.store.load()) == (one.pipeline, None)
