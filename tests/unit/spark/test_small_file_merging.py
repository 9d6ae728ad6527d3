"""The merging of a follow: everything there is to merge, at one small read where nothing is new."""

import pytest
from tests.support.follow_world import FollowWorld
from tests.support.memory_writers import Stream
from tests.support.pipeline_world import PipelineWorld

from tidemark.app.follow.rounds import Rounds
from tidemark.compaction.merging import merge
from tidemark.log.model import manifest as manifest_module
from tidemark.log.publish import read_log
from tidemark.log.state.lease import read_lease, take_log
from tidemark.spark.jobs.follow import SmallFileMerging

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def small_segments(monkeypatch) -> None:
    """Segments close at four files."""
    monkeypatch.setattr(manifest_module, "MAX_FILES_PER_SEGMENT", 4)


@pytest.fixture
def world(tmp_path, monkeypatch) -> FollowWorld:
    return FollowWorld.given(PipelineWorld(tmp_path), monkeypatch, Stream())


@pytest.fixture
def rounds(world) -> Rounds:
    return world.rounds()


@pytest.fixture
def merging(world, rounds) -> SmallFileMerging:
    return SmallFileMerging(world.opened.pipeline, rounds)


@pytest.fixture
def holders(monkeypatch) -> list[str]:
    """The names under which merges have taken the log."""
    taken: list[str] = []

    def take(control, holder, clock):
        taken.append(holder)
        return take_log(control, holder, clock)

    monkeypatch.setattr(merge, "take_log", take)
    return taken


def publish(world: FollowWorld, rounds: Rounds, bindings: int) -> None:
    for number in range(bindings):
        world.kafka.send(b"%d" % number)
        rounds.whole()


def files(rounds: Rounds) -> int:
    return read_log(rounds.control, rounds.folder).file_count


def never() -> bool:
    return False


def test_files_of_closed_segments_are_merged(world, rounds, merging):
    publish(world, rounds, 9)
    merging(never)
    assert files(rounds) == 3  # of two closed segments one each, and the one of the segment that is open


def test_every_merge_holds_the_log_under_a_name_of_its_own(world, rounds, merging, holders):
    for _ in range(2):
        publish(world, rounds, 5)
        merging(never)
    assert len(set(holders)) == 2
    assert all(one.startswith(f"{rounds.holder}, merge ") for one in holders)


def test_where_nothing_is_new_neither_files_nor_leases_are_looked_at(world, rounds, merging, monkeypatch):
    publish(world, rounds, 5)
    merging(never)
    monkeypatch.setattr(merge, "read_log", lambda *given: pytest.fail("looked at the log again"))
    merging(never)


def test_a_segment_without_anything_to_merge_is_read_once(world, rounds, merging, monkeypatch):
    publish(world, rounds, 9)
    merging(never)
    publish(world, rounds, 1)
    monkeypatch.setattr(merge.Manifest, "segment_of", lambda *given: pytest.fail("read a list again"))
    merging(never)


def test_a_log_that_another_process_holds_is_merged_the_next_time(world, rounds, merging):
    publish(world, rounds, 5)
    hold = take_log(rounds.control, "compaction")
    merging(never)
    assert files(rounds) == 5
    hold.release()
    merging(never)
    assert (files(rounds), read_lease(rounds.control).lease) == (2, None)


def test_a_run_that_is_over_begins_no_merge(world, rounds, merging):
    publish(world, rounds, 5)
    merging(lambda: True)
    assert files(rounds) == 5


def test_a_run_that_is_over_abandons_the_merge_under_way(world, rounds, merging):
    publish(world, rounds, 9)
    asked = iter(range(100))
    merging(lambda: next(asked) >= 2)
    assert (files(rounds), read_lease(rounds.control).lease) == (9, None)
    merging(never)
    assert files(rounds) == 3


def test_a_merge_that_fails_raises_nothing(world, rounds, merging, monkeypatch):
    publish(world, rounds, 5)
    monkeypatch.setattr(merge, "read_log", lambda *given: 1 / 0)
    merging(never)
    assert files(rounds) == 5
