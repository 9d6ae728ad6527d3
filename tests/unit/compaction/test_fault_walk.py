"""A compaction dies between any two durable writes, and the next run makes the log what it would have been.

What comes next: the same run, another one after the dead one's lease is over, or one that overtakes it.
After the sweep nothing is left that the log does not name.
"""

from collections.abc import Callable
from contextlib import suppress

import pytest
from tests.support.compaction_samples import of_keys
from tests.support.compaction_world import HOUR, World, given_journal, given_latest
from tests.support.fault_points import COMPACT, SWEEP
from tests.support.faults import Killed
from tests.support.log_world import content_of, without_attempts

from tidemark.log.state.compactions import CompactionOutcome, compactions
from tidemark.log.state.lease import LogHeld, LogLost

pytestmark = pytest.mark.unit

LOGS = {"journal": given_journal, "latest": lambda root: given_latest(root, "a b a -c", "b c d", "d e")}


def finished(world: World) -> tuple:
    """The log after a sweep, and everything in its folder."""
    world.now += 10 * HOUR
    world.sweep()
    stored = world.stored()
    data = {name: digest for name, digest in stored.items() if name.startswith("files/")}
    return content_of(world.log), without_attempts(stored), data


def expected(root, given: Callable[..., World]) -> tuple:
    world = given(root)
    world.compact("whole")
    return finished(world)


@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize("again", ["killed", "other"], ids=["the same run again", "another run"])
@pytest.mark.parametrize("point", COMPACT)
def test_T51_a_compaction_that_was_killed_is_finished_by_the_next(tmp_path, kill_at, point, again, kind):
    world = LOGS[kind](tmp_path / "killed")
    kill_at(point)
    with pytest.raises(Killed):
        world.compact("killed")

    if again == "other":
        world.now += HOUR
    world.compact(again)

    assert finished(world) == expected(tmp_path / "whole", LOGS[kind])


@pytest.mark.parametrize("point", COMPACT)
def test_G17_a_compaction_that_was_killed_is_on_record_once(tmp_path, kill_at, point):
    world = given_journal(tmp_path)
    kill_at(point)
    with pytest.raises(Killed):
        world.compact("killed")

    world.compact("killed")

    done = [one for one in compactions(world.control) if one.outcome is CompactionOutcome.COMPACTED]
    assert [(one.messages_before, one.messages_after) for one in done] == [(9, 4)]


@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize("point", COMPACT)
def test_a_second_compaction_at_once_is_refused_and_changes_nothing(tmp_path, at_point, point, kind):
    world = LOGS[kind](tmp_path / "two")
    refused = []

    def overtake() -> None:
        try:
            world.compact("overtaking")
        except LogHeld as error:
            refused.append(error)

    at_point(point, overtake)
    world.compact("slow")

    assert [error.lease.holder for error in refused] == ["slow"]
    assert finished(world) == expected(tmp_path / "one", LOGS[kind])


@pytest.mark.parametrize("point", COMPACT)
def test_a_compaction_that_was_overtaken_stops_and_the_other_one_counts(tmp_path, at_point, point):
    world = given_journal(tmp_path / "two")

    def overtake() -> None:
        world.now += HOUR
        world.compact("overtaking")

    at_point(point, overtake)
    with suppress(LogLost):
        world.compact("slow")

    assert finished(world) == expected(tmp_path / "one", given_journal)


@pytest.mark.parametrize("point", COMPACT)
def test_what_is_published_at_any_point_stays(tmp_path, at_point, point):
    world = given_journal(tmp_path / "races")
    at_point(point, lambda: world.publish(*of_keys("new")))

    world.compact("run")

    assert world.log.end == 9
    assert world.ids() == [4, 5, 7, 8, 9]


@pytest.mark.parametrize("point", SWEEP)
def test_a_sweep_that_was_killed_is_finished_by_the_next(tmp_path, kill_at, point):
    world = given_journal(tmp_path / "killed")
    world.compact("run")
    kill_at(point)
    with pytest.raises(Killed):
        world.sweep()
    assert finished(world) == expected(tmp_path / "whole", given_journal)


@pytest.mark.parametrize("point", COMPACT)
def test_G6_a_reader_of_any_moment_finishes_on_what_it_opened(tmp_path, at_point, point):
    world = given_journal(tmp_path)
    opened = []
    at_point(point, lambda: opened.append(world.log))

    world.compact("run")

    read = [
        i for f in opened[0].files for b in world.folder.read_file(f, ["id"]) for i in b["id"].to_pylist()
    ]
    assert sorted(read) in ([0, 1, 2, 3, 4, 5, 6, 7, 8], [4, 5, 7, 8])


def test_every_point_of_compaction_is_walked():
    assert len(COMPACT) == 9
    assert len(SWEEP) == 2
