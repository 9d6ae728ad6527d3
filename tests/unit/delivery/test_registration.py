"""Writers that a log waits for: known before they are registered, and until they are forgotten."""

import pytest
from tests.support.consensus import RacingConsensus
from tests.support.faults import Killed
from tests.support.log_samples import compact, given_binding
from tests.support.memory_writers import Shelf, Stream
from tests.support.pipeline_world import PipelineWorld

from tidemark.delivery.compacted_history import HistoryCompacted
from tidemark.delivery.operator.action_plan import NotPossible
from tidemark.delivery.state.registration import holds_below, registered_writers
from tidemark.faults import FaultPoint
from tidemark.log.state.lease import LogHeld, take_log
from tidemark.log.state.registered_writers import enrolled

pytestmark = pytest.mark.unit


def waited_for(house: PipelineWorld, *declared: str) -> dict[str, tuple[int, int, bool]]:
    found = registered_writers(house.control, house.positions, declared)
    return {one.name: (one.position, one.holds_below, one.is_declared) for one in found}


# Who is waited for


def test_T47_every_registered_writer_is_known_with_its_position(house):
    house.publish(orders="ab")
    house.publish(orders="cd")
    house.deliver(Stream())
    house.deliver(Shelf(), limit=1)
    assert waited_for(house, "stream", "shelf") == {"shelf": (1, 1, True), "stream": (3, 3, True)}


def test_a_retired_writer_is_still_waited_for(house):
    house.publish(orders="ab")
    house.deliver(Stream())
    assert waited_for(house) == {"stream": (1, 1, False)}


def test_T46_a_writer_that_never_ran_has_finished_with_nothing(house):
    house.publish(orders="ab")
    assert waited_for(house, "stream") == {"stream": (-1, -1, True)}


def test_a_writer_that_was_registered_before_there_was_a_list_is_found_all_the_same(house):
    house.publish(orders="ab")
    house.register(Stream(), position=1)
    assert enrolled(house.control) == {}
    assert waited_for(house) == {"stream": (1, 1, False)}
    house.deliver(Stream())
    assert set(enrolled(house.control)) == {"stream"}


def test_a_writer_in_the_middle_of_a_binding_needs_all_of_it(house):
    house.publish(orders="ab")
    house.publish(orders="cdef")
    house.deliver(Stream(bad={4}))
    assert waited_for(house, "stream") == {"stream": (3, 2, True)}


@pytest.mark.parametrize(
    ("position", "expected"),
    [(-1, -1), (1, 1), (2, 2), (3, 2), (4, 2), (5, 5)],
    ids=["nothing yet", "at an end", "inside, first id", "inside", "one left", "at the end of the log"],
)
def test_ids_below_the_position_are_over_but_not_those_of_the_binding_under_way(position, expected):
    bindings = [given_binding(1_000, 0, ("a", 0, 0, 2)), given_binding(2_000, 2, ("a", 0, 2, 6))]
    following = next((one for one in bindings if one.end > position), None)
    assert holds_below(position, following) == expected


# Registering


def test_no_writer_is_registered_while_the_log_is_leased(house):
    house.publish(orders="ab")
    take_log(house.control, "compaction", house.clock)
    with pytest.raises(LogHeld, match=r"compaction has the log .* a new writer is refused meanwhile"):
        house.deliver(Stream())
    assert (house.positions.load("stream"), enrolled(house.control)) == (None, {})


def test_a_registered_writer_is_delivered_to_while_the_log_is_leased(house):
    house.publish(orders="ab")
    house.deliver(writer := Stream())
    take_log(house.control, "compaction", house.clock)
    house.publish(orders="c")
    house.deliver(writer)
    assert writer.ids == [0, 1, 2]


def test_a_writer_that_died_while_it_was_registered_is_waited_for_and_registered_by_the_next_run(
    house, kill_at
):
    house.publish(orders="ab")
    kill_at(FaultPoint.REGISTER_ENROLLED)
    with pytest.raises(Killed):
        house.deliver(Stream())
    assert waited_for(house) == {"stream": (-1, -1, False)}
    house.deliver(writer := Stream())
    assert (writer.ids, waited_for(house)) == ([0, 1], {"stream": (1, 1, False)})


def test_a_compaction_that_came_between_look_and_registration_is_noticed(tmp_path):
    house = PipelineWorld(tmp_path, RacingConsensus())
    house.publish(orders="ab")
    house.publish(orders="cd")
    opened = house.log

    class Late(PipelineWorld):
        log = opened

    late = Late(tmp_path, house.consensus, house.clock)
    compact(house.control, opened.folder, below=2, keep=lambda id_: False, policy="latest")
    with pytest.raises(HistoryCompacted):
        late.deliver(Stream())
    assert (house.positions.load("stream"), enrolled(house.control)) == (None, {})


def test_who_takes_the_log_while_a_writer_is_registered_finds_it(tmp_path):
    house = PipelineWorld(tmp_path, RacingConsensus())
    house.publish(orders="ab")
    seen = []

    def look() -> None:
        take_log(house.control, "compaction", house.clock).release()
        seen.append(waited_for(house))

    house.consensus.before_next_commit = look
    house.deliver(Stream())
    # It was faster than the list: it has seen no writer, and its own compare-and-set meets another version.
    assert seen == [{}]
    assert waited_for(house) == {"stream": (1, 1, False)}


# Going back


def test_no_writer_goes_back_while_the_log_is_leased(house):
    house.publish(orders="ab")
    house.deliver(writer := Stream())
    take_log(house.control, "compaction", house.clock)
    with pytest.raises(LogHeld, match="a rewind is refused"):
        house.rewind("stream", 0)
    assert house.position(writer) == 1


def test_a_rewind_that_may_still_happen_is_waited_for(house, kill_at):
    house.publish_ids(4)
    house.deliver(writer := Stream())
    kill_at(FaultPoint.REWIND_ANNOUNCED)
    with pytest.raises(Killed):
        house.rewind("stream", 1)
    assert (house.position(writer), waited_for(house)) == (3, {"stream": (1, 1, False)})
    house.publish(orders="e")
    house.deliver(writer)
    assert waited_for(house) == {"stream": (4, 4, False)}


def test_a_rewind_that_has_happened_is_just_a_position(house):
    house.publish_ids(4)
    house.deliver(Stream())
    house.rewind("stream", 1)
    assert waited_for(house) == {"stream": (1, 1, False)}
    house.deliver(Stream())
    assert waited_for(house) == {"stream": (3, 3, False)}


# Forgetting


def forget(house: PipelineWorld) -> None:
    house.operator.forget("stream", []).execute(house.deed("forget"))


def test_a_forgotten_writer_is_not_waited_for(house):
    house.publish(orders="ab")
    house.deliver(Stream())
    forget(house)
    assert waited_for(house) == {}


def test_a_removal_that_was_killed_is_finished_by_the_next(house, kill_at):
    house.publish(orders="ab")
    house.deliver(Stream())
    kill_at(FaultPoint.FORGOTTEN)
    with pytest.raises(Killed):
        forget(house)
    assert waited_for(house) == {"stream": (-1, -1, False)}
    forget(house)
    assert waited_for(house) == {}
    with pytest.raises(NotPossible, match="no writer of this name was ever registered"):
        forget(house)


def test_a_writer_that_is_registered_again_meanwhile_stays_on_the_list(house, kill_at):
    house.publish(orders="ab")
    house.deliver(Stream())
    kill_at(FaultPoint.FORGOTTEN)
    with pytest.raises(Killed):
        forget(house)
    plan = house.operator.forget("stream", [])
    house.deliver(Stream())
    plan.execute(house.deed("forget"))
    assert waited_for(house) == {"stream": (1, 1, False)}
    assert set(enrolled(house.control)) == {"stream"}
