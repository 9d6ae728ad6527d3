"""Old versions are removed as far as readers allow, and never what a readable time sees."""

import pytest
from tests.support.output_store_world import OutputStoreWorld

from tidemark.clock import SECOND
from tidemark.outputs.model.capability import GRACE
from tidemark.outputs.reader_errors import Forgotten
from tidemark.outputs.state.reader_lease import new_capability
from tidemark.outputs.state.trim import trim

pytestmark = pytest.mark.unit


def trimmed(world: OutputStoreWorld, cut: int) -> int:
    return trim(world.store, world.readers, world.progress, cut, world.versions).since


@pytest.fixture
def world() -> OutputStoreWorld:
    """One rendition with bindings at 10, 20, 30 and 40; readable before 41."""
    return OutputStoreWorld.begun(bindings=4)


def test_the_cut_is_the_first_readable_time_afterwards(world):
    assert trimmed(world, 35) == 35
    assert world.readers.load().since == 35
    assert world.versions.calls == ["versions 1 35", "changes 1 0 35"]
    assert world.output.rendition(1).trimmed == 35
    with pytest.raises(Forgotten):
        world.readers.pin("late", 34, "ann")


def test_a_time_that_a_pin_or_a_reader_holds_and_the_state_before_it_stay(world):
    world.readers.pin("audit", 20, "ann")
    assert trimmed(world, 35) == 19
    world.readers.drop("audit")
    world.readers.register(new_capability(world.readers, 30, "a reader", SECOND))
    assert trimmed(world, 35) == 29
    world.clock.now += SECOND + GRACE
    assert trimmed(world, 35) == 35
    assert [one for one in world.versions.calls if one.startswith("changes")] == [
        "changes 1 0 19",
        "changes 1 19 29",
        "changes 1 29 35",
    ]


def test_one_time_stays_readable_however_old_everything_is(world):
    assert trimmed(world, 10**18) == 40


def test_where_nothing_is_old_nothing_is_forgotten(world):
    assert trimmed(world, 9) == 9
    assert trimmed(world, -5) == 9
    assert world.versions.calls == []


def test_without_a_binding_since_the_last_removal_no_table_is_read(world):
    trimmed(world, 35)
    world.versions.calls.clear()
    assert trimmed(world, 38) == 38
    assert world.versions.calls == []
    assert trimmed(world, 40) == 40
    assert world.versions.calls == ["versions 1 40", "changes 1 35 40"]


def test_versions_younger_than_keep_stay_where_times_were_forgotten_for_another_reason(world):
    world.build()
    world.hand_over(2)
    world.bind(50)
    world.finish(1)
    world.deliver(2)
    world.retire(1)
    assert world.readers.load().since == 41
    assert trimmed(world, 25) == 41
    assert world.versions.calls == ["versions 2 25", "changes 2 0 25"]


def test_renditions_that_are_delivered_to_are_trimmed_once_they_have_finished_the_time(world):
    number = world.declare()
    trimmed(world, 25)
    assert world.versions.there.keys() == {1}
    world.finish(number)
    trimmed(world, 25)
    assert world.versions.there == {1: (25, 25), number: (25, 25)}


def test_given_up_and_retired_renditions_are_left_alone(world):
    from tidemark.outputs.state import lifecycle

    number = world.build()
    lifecycle.abandon(world.store, number, world.signature())
    trimmed(world, 25)
    assert world.versions.there.keys() == {1}


def test_a_reader_that_registers_meanwhile_keeps_its_time(world, at_point):
    # The reader is there before `since` is raised, or is refused after it: nothing in between.
    from tidemark.faults import FaultPoint

    refused = []

    def register() -> None:
        with pytest.raises(Forgotten) as found:
            world.readers.pin("late", 20, "ann")
        refused.append(found.value.since)
        world.readers.pin("in time", 35, "ann")

    at_point(FaultPoint.TRIM_SINCE_RAISED, register)
    assert trimmed(world, 35) == 35
    assert refused == [35]
    assert world.versions.there == {1: (35, 35)}
