"""The commit log as streams read it: where it is whole, its records, and which times lie where."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.memory_collection import TOPIC
from tests.support.oplog_world import OplogWorld

from tidemark.kafka.errors import OffsetGone
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind
from tidemark.oplog.agent.streams.sources.commit_log import LoggedBindings
from tidemark.oplog.agent.streams.sources.logged_topic import MissedTimes
from tidemark.oplog.model.judged_operations import LookBack
from tidemark.oplog.model.resume_plan import LoggedOffsets

pytestmark = pytest.mark.unit


@pytest.fixture
def world(tmp_path: Path) -> OplogWorld:
    return OplogWorld(tmp_path)


def log_of(world: OplogWorld, topic_id: str | None = None) -> LoggedBindings:
    folder = LogFolder("orders", str(world.root / "log"))
    return LoggedBindings(lambda: world.control, folder, TOPIC, topic_id or world.topic_id, 2)


def read(world: OplogWorld, starts: dict[int, int]) -> tuple[list[tuple[int, int, str]], Any]:
    with log_of(world).records(starts) as (records, ends):
        found = [(one.partition, one.offset, (one.key or b"").decode()) for one in records]
        return found, ends


def accept_loss(world: OplogWorld, partition: int, lower: int, upper: int) -> None:
    """A loss by retention, which an operator has accepted: the next binding begins after it."""
    loss = Loss(LossKind.RETENTION, TOPIC, partition, lower, upper)
    head = world.control.bindings_head()
    world.control.record_losses(head, [AcceptedLoss(loss, None, 0, "ann", "known", 1, 1)])


def compacted(world: OplogWorld, below: int) -> None:
    """Everything below an id counts as compacted."""
    log, folder = world.log, LogFolder("orders", str(world.root / "log"))
    manifest = replace(log.manifest, compacted_below=below)
    path, digest = folder.write_manifest(manifest)
    head = world.control.log_head()
    after = replace(head, manifest=path, digest=digest, compacted_below=below)
    world.control.replace_log(head.version, after)


def test_an_empty_log_has_nothing(world: OplogWorld) -> None:
    assert log_of(world).offsets({0: 0}) == {}


def test_the_log_of_a_partition_reaches_over_its_bindings(world: OplogWorld) -> None:
    world.publish_records("x y", "z")
    world.publish_records("x+", "z+ z+")
    assert log_of(world).offsets({0: 1, 1: 0}) == {0: LoggedOffsets(0, 3), 1: LoggedOffsets(0, 3)}


def test_only_as_many_bindings_are_read_as_an_offset_needs(world: OplogWorld) -> None:
    world.publish_records("x y")
    world.publish_records("x+ y+")
    assert log_of(world).offsets({0: 2}) == {0: LoggedOffsets(2, 4)}


def test_a_binding_without_a_partition_makes_no_gap(world: OplogWorld) -> None:
    world.publish_records("x", "z")
    world.publish_records("y", "")
    world.publish_records("x+", "z+")
    assert log_of(world).offsets({1: 0}) == {1: LoggedOffsets(0, 2)}


def test_records_come_from_where_they_are_wanted_on(world: OplogWorld) -> None:
    world.publish_records("x y", "z")
    world.publish_records("x+", "z+")
    found, ends = read(world, {0: 1, 1: 1})
    assert found == [(0, 1, "video/y"), (0, 2, "video/x"), (1, 1, "video/z")]
    assert ends == {0: 3, 1: 2}


def test_partitions_that_are_not_wanted_are_left_out(world: OplogWorld) -> None:
    world.publish_records("x", "z")
    assert read(world, {1: 0})[0] == [(1, 0, "video/z")]


def test_holes_have_no_records_and_no_gap(world: OplogWorld) -> None:
    world.publish_records("x - -")
    world.publish_records("- y")
    found, ends = read(world, {0: 0})
    assert ([offset for _, offset, _ in found], ends) == ([0, 4], {0: 5})


def test_headers_are_those_of_the_records(world: OplogWorld) -> None:
    world.publish_records("x y@0")
    with log_of(world).records({0: 0}) as (records, _):
        assert [[name for name, _ in one.headers or ()] for one in records] == [[], ["correction"]]


def test_a_partition_behind_an_accepted_loss_is_left_out(world: OplogWorld) -> None:
    world.publish_records("x y z")
    accept_loss(world, 0, 3, 5)
    assert log_of(world).offsets({0: 1}) == {}


def test_a_partition_after_an_accepted_loss_is_whole(world: OplogWorld) -> None:
    world.publish_records("x y z")
    accept_loss(world, 0, 3, 5)
    world.publish_records("x y")
    assert log_of(world).offsets({0: 5}) == {0: LoggedOffsets(5, 7)}


def test_what_was_compacted_is_not_exact(world: OplogWorld) -> None:
    world.publish_records("x y")
    second = world.publish_records("x+ y+")
    compacted(world, second.base)
    assert log_of(world).offsets({0: 1, 1: 0}) == {0: LoggedOffsets(2, 4)}


def test_records_that_were_compacted_are_gone(world: OplogWorld) -> None:
    world.publish_records("x y")
    second = world.publish_records("x+ y+")
    compacted(world, second.base)
    with pytest.raises(OffsetGone):
        read(world, {0: 1})


def test_bindings_of_an_earlier_topic_do_not_count(world: OplogWorld) -> None:
    world.publish_records("x y")
    world.recreate_topic("another")
    world.publish_records("z")
    assert log_of(world).offsets({0: 0}) == {0: LoggedOffsets(0, 1)}
    assert read(world, {0: 0})[0] == [(0, 0, "video/z")]


def test_a_loss_of_an_earlier_topic_does_not_count(world: OplogWorld) -> None:
    world.publish_records("x y")
    accept_loss(world, 0, 2, 9)
    world.recreate_topic("another")
    world.publish_records("z")
    assert log_of(world).offsets({0: 0}) == {0: LoggedOffsets(0, 1)}


def test_looking_back_gives_everything_from_what_is_needed(world: OplogWorld) -> None:
    world.publish_records("x y z x y")
    found = log_of(world).look_back(LookBack(0, needed=1, first=0, end=4))
    assert (found.first, [one.offset for one in found.operations]) == (0, [0, 1, 2, 3])


def test_looking_back_further_than_the_log_goes_is_refused(world: OplogWorld) -> None:
    world.publish_records("x y")
    second = world.publish_records("x+ y+")
    compacted(world, second.base)
    with pytest.raises(OffsetGone, match="not in the log"):
        log_of(world).look_back(LookBack(0, needed=1, first=0, end=4))


def test_looking_back_where_the_log_ends_too_early_is_refused(world: OplogWorld) -> None:
    world.publish_records("x y")
    with pytest.raises(OffsetGone):
        log_of(world).look_back(LookBack(0, needed=1, first=0, end=4))


def test_the_ends_of_a_time_are_those_of_all_bindings_up_to_it(world: OplogWorld) -> None:
    first = world.publish_records("x y", "z")
    second = world.publish_records("x+", "")
    log = log_of(world)
    assert log.ends_at(second.t) == (3, 1)
    assert log.ends_at(first.t) == (2, 1)


def test_the_ends_of_a_later_time_are_found_from_those_that_are_known(world: OplogWorld) -> None:
    first = world.publish_records("x y", "z")
    log = log_of(world)
    assert log.ends_at(first.t + 5) == (2, 1)
    second = world.publish_records("", "z+")
    third = world.publish_records("x+", "")
    assert log.ends_at(second.t) == (2, 2)
    assert log.ends_at(third.t + 7) == (3, 2)


def test_a_partition_that_was_never_bound_has_no_end(world: OplogWorld) -> None:
    first = world.publish_records("x", "")
    assert log_of(world).ends_at(first.t) == (1, None)


def test_the_ends_of_a_recreated_topic_are_its_own(world: OplogWorld) -> None:
    world.publish_records("x y", "z")
    world.recreate_topic("another")
    second = world.publish_records("x", "")
    assert log_of(world).ends_at(second.t) == (1, None)


def test_a_vector_lies_between_the_bindings_around_it(world: OplogWorld) -> None:
    world.publish_records("x y", "z")
    second = world.publish_records("x+ y+", "z+")
    third = world.publish_records("x+", "z+")
    assert log_of(world).missed((3, 2)) == MissedTimes(second.t - 1, third.t)


def test_a_vector_at_the_end_of_a_binding_has_all_of_it(world: OplogWorld) -> None:
    world.publish_records("x y")
    second = world.publish_records("x+ y+")
    assert log_of(world).missed((2, None)) == MissedTimes(second.t - 1, second.t)


def test_a_vector_that_has_everything_has_missed_nothing(world: OplogWorld) -> None:
    first = world.publish_records("x y")
    assert log_of(world).missed((2, None)) == MissedTimes(first.t, first.t)
