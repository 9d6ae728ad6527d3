"""The work journal dies between any two durable writes, and what is left comes to the same end.

Here in memory; ``tests/system/test_work.py`` lets processes die and answers get lost on Cassandra.
"""

import pytest
from tests.support.clocks import MORNING
from tests.support.contracts.work_world import WorkWorld, given_declaration, memory_stores
from tests.support.fault_points import WORK
from tests.support.faults import Killed

from tidemark.work.model.entry import Ending, Seen
from tidemark.work.queue.dead_letters import dead_letters, redrive, see
from tidemark.work.queue.listing import figures, history

pytestmark = pytest.mark.unit


def given_house() -> WorkWorld:
    declared = given_declaration(time_limit="60s", max_failures=1, max_timeouts=9, history="7d")
    return WorkWorld(memory_stores(), declared)


def ask(house: WorkWorld) -> None:
    for key in ("good", "bad"):
        house.insert(key, process=MORNING, inserted=MORNING)


def carry_out(house: WorkWorld) -> None:
    """Two entries to their ends, one of them dead, sent again and done; all buckets thrown away."""
    drain(house, failing="bad")
    for kept in list(dead_letters(house.parts, house.clock())):
        see(house.parts, kept.letter, Seen("ann", house.clock(), "the route was gone"))
        redrive(house.journal, kept.letter)
    drain(house, failing="")
    house.clock.now += 3 * 3_600_000
    house.sweep("good", "bad")


def drain(house: WorkWorld, failing: str) -> None:
    while figures(house.parts, house.clock()).waiting + figures(house.parts, house.clock()).processing:
        for claimed in house.claim(limit=5):
            if claimed.key == failing:
                house.journal.fail(claimed, "no route")
            else:
                house.journal.done(claimed)
        house.clock.now += 61_000
        house.sweep("good", "bad")


def state(house: WorkWorld) -> object:
    """What is left, and what was done, in any number of attempts."""
    found = figures(house.parts, house.clock())
    done = {run.key for run in history(house.parts, house.clock(), 2) if run.ending is Ending.DONE}
    buckets = {one for one in found.buckets.values() if one != "open"}
    return found.waiting, found.processing, found.dead, done, buckets


@pytest.mark.parametrize("nth", range(1, 9))
@pytest.mark.parametrize("point", WORK)
def test_a_death_at_any_point_changes_nothing_in_the_end(kill_at, point, nth):
    undisturbed = given_house()
    ask(undisturbed)
    carry_out(undisturbed)
    wanted = state(undisturbed)

    reached = kill_at(point, nth)
    house = given_house()
    # Acknowledged inserts are not repeated: that would hide their loss.
    for act in (ask, carry_out):
        try:
            act(house)
        except Killed:
            house.restart()
            act(house)
    assert reached, "never reached"
    assert state(house) == wanted
