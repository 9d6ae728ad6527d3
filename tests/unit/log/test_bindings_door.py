"""The one door to bindings: the same consecutive bindings wherever they are, or a refusal."""

from dataclasses import replace

import pytest
from tests.support.archive_world import BINDINGS, ArchiveWorld
from tests.support.log_samples import add_binding, given_binding

from tidemark.consensus.objects import Change, RowRange
from tidemark.log.bindings.archive import remove_archived
from tidemark.log.bindings.door import Bindings
from tidemark.log.errors import BadBinding, BindingsMissing
from tidemark.log.files.binding_lists import BindingListReader
from tidemark.log.model.binding_list import NO_BINDING_LISTS
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind
from tidemark.log.publish import publish, read_log
from tidemark.log.state.control import LogHead

pytestmark = pytest.mark.unit


@pytest.fixture
def world(tmp_path) -> ArchiveWorld:
    return ArchiveWorld(tmp_path)


@pytest.fixture(scope="module")
def old(tmp_path_factory) -> ArchiveWorld:
    """64 bindings with one id each, most of them in lists of two levels."""
    world = ArchiveWorld(tmp_path_factory.mktemp("old"))
    world.replicate(64)
    assert {line.level for line in world.lists.lines} == {0, 1, 2}
    return world


# Wherever they are


@pytest.mark.parametrize("position", [-1, 0, 3, 4, 11, 12, 40, 43, 44, 45, 58, 63, 100])
def test_bindings_after_a_position_are_all_of_them_oldest_first(old, position):
    assert [one.base for one in old.door.after(position)] == list(range(max(position + 1, 0), 64))


@pytest.mark.parametrize("t", [-1, 0, 10, 15, 120, 480, 635, 640])
def test_bindings_younger_than_a_time_are_all_of_them_oldest_first(old, t):
    assert [one.t for one in old.door.younger(t)] == [10 * n for n in range(1, 65) if 10 * n > t]


@pytest.mark.parametrize("t", [None, 641, 640, 480, 120, 15, 10, 5])
def test_bindings_before_a_time_are_all_of_them_newest_first(old, t):
    times = [10 * n for n in range(64, 0, -1)]
    assert [one.t for one in old.door.before(t)] == [one for one in times if t is None or one < t]


def test_every_binding_is_found_by_its_time_and_by_its_run(old):
    for binding in old.door.every():
        assert old.door.at(binding.t) == binding
        assert old.door.of_run(binding.run_id) == binding


@pytest.mark.parametrize("t", [5, 15, 641])
def test_a_time_without_a_binding_is_refused(old, t):
    with pytest.raises(BadBinding, match=f"no binding at {t}"):
        old.door.at(t)


def test_a_run_that_never_bound_has_no_binding(old):
    assert old.door.of_run("run-64") is None


def test_the_folder_of_the_current_manifest_is_found_without_being_told(old):
    assert list(Bindings(old.control).every()) == list(old.door.every())


def test_the_offsets_before_a_binding_are_found_in_lists(old):
    for binding in old.door.every():
        expected = {} if binding.base == 0 else {("orders", 0): binding.base - 1}
        assert old.door.offsets_before(binding) == expected


def test_a_partition_that_was_last_bound_long_ago_has_its_last_offset(world):
    add_binding(world.control, first := given_binding(10, 0, ("idle", 3, 7, 9), run_id="first"))
    world.now, world.records, world.passed = 10, 0, 1
    world.publish(first)
    world.replicate(40)
    end = world.control.log_head().end
    late = given_binding(world.now + 10, end + 1, ("idle", 3, 9, 10), ("new", 0, 0, 1), run_id="late")
    add_binding(world.control, late)
    assert world.door.offsets_before(late) == {("idle", 3): 8}
    assert world.door.offsets_before(late, lambda topic, older: older.t > 10) == {}


def test_the_last_binding_of_a_topic_is_found_in_lists(old):
    assert old.door.last_of("orders", 20, 0).base == 20
    assert old.door.last_of("other", 20, 0) is None


# How much is read


def test_near_the_end_only_rows_are_read(old, monkeypatch):
    monkeypatch.setattr(BindingListReader, "_bytes", None)
    monkeypatch.setattr(type(old.control), "log_head", None)
    assert [one.base for one in old.door.after(61)] == [62, 63]


def test_lists_are_read_oldest_first_while_they_are_consumed(old, monkeypatch):
    read = []
    whole = BindingListReader.read
    monkeypatch.setattr(
        BindingListReader, "read", lambda reader, line: read.append(line.first_id) or whole(reader, line)
    )
    found = old.door.after(-1)
    assert (next(found).base, read) == (0, [0])
    assert ([next(found).base for _ in range(4)], read) == ([1, 2, 3, 4], [0, 4])


def test_a_run_that_never_bound_reads_no_list(old, monkeypatch):
    monkeypatch.setattr(BindingListReader, "read", None)
    assert old.door.of_run("run-64") is None


# Gaps


def test_rows_that_were_deleted_by_hand_are_a_gap(world):
    world.keep = 10_000
    world.replicate(10)
    remove(world, RowRange("t/00000000000000000040", "t/00000000000000000061"))
    with pytest.raises(BindingsMissing) as refusal:
        list(world.door.after(-1))
    assert (refusal.value.pipeline, refusal.value.first_id, refusal.value.last_id) == ("orders", 3, 5)
    with pytest.raises(BindingsMissing):
        list(world.door.before())
    assert [one.base for one in world.door.after(6)] == [7, 8, 9]


def test_the_oldest_rows_deleted_by_hand_are_a_gap(world):
    world.keep = 10_000
    world.replicate(10)
    remove(world, RowRange("t/", "t/00000000000000000041"))
    for read in (world.door.every, lambda: world.door.younger(5), world.door.before):
        with pytest.raises(BindingsMissing) as refusal:
            list(read())
        assert (refusal.value.first_id, refusal.value.last_id) == (0, 3)


def test_all_rows_deleted_by_hand_are_a_gap(world):
    world.keep = 10_000
    world.replicate(10)
    remove(world, RowRange("t/", "u"))
    with pytest.raises(BindingsMissing):
        list(world.door.after(3))


def test_a_manifest_that_lost_its_lists_is_a_gap(world):
    world.replicate(30)
    head, manifest = world.control.log_head(), read_log(world.control, world.folder)
    without = replace(manifest, bindings=NO_BINDING_LISTS)
    named = LogHead.naming(without, *world.folder.write_manifest(without), str(world.root))
    world.control.replace_log(head.version, named)
    with pytest.raises(BindingsMissing, match="tidemark log verify orders"):
        list(world.door.every())


def remove(world: ArchiveWorld, rows: RowRange) -> None:
    version = world.consensus.read(BINDINGS, ["head"]).version
    world.consensus.commit(BINDINGS, version, Change(ranges=[rows]))


# While bindings leave


def test_a_walk_goes_on_while_the_bindings_it_is_about_to_read_leave(world):
    world.keep = 10_000
    world.replicate(30)
    walk = world.door.after(-1)
    found = [next(walk) for _ in range(3)]
    world.keep = 100
    world.replicate(30, begin=30)
    assert world.control.bindings_head().removed > 300
    found += walk
    assert [one.base for one in found][:30] == list(range(30))
    assert [one.base for one in found] == list(range(len(found)))


def test_rows_that_a_list_has_too_come_once(world, monkeypatch):
    monkeypatch.setattr("tidemark.log.publish.remove_archived", lambda *_: 0)
    world.replicate(30)
    assert (world.lists.count > 8, len(world.rows("t/"))) == (True, 30)
    assert [one.base for one in world.door.every()] == list(range(30))
    assert [one.base for one in world.door.before()] == list(range(29, -1, -1))
    assert remove_archived(world.control, str(world.root), world.lists) == world.lists.count
    assert [one.base for one in world.door.every()] == list(range(30))


# Runs


def test_a_run_that_is_cleared_after_its_binding_left_gets_it_again(old):
    before = old.rows("")
    for number in (0, 7, 30):
        assert old.bind(f"run-{number}", records=5) == old.door.at(10 * (number + 1))
    assert old.rows("") == before
    old.records -= 15


def test_what_such_a_run_publishes_again_changes_nothing(world):
    world.replicate(40)
    head = world.control.log_head()
    again = world.bind("run-0")
    assert publish(world.control, world.folder, again, 1_000, world.now) == head


# Topics that were made again


def test_the_last_binding_of_a_topic_is_kept_with_a_loss_of_an_earlier_version_before_rows_go(world):
    world.keep = 10_000
    world.replicate(5)
    loss = Loss(LossKind.RECREATED, "orders", 0, 5, 5)
    accepted = AcceptedLoss(loss, None, 4, "ann", "known", 1, is_planned=True)
    world.control.record_losses(world.control.bindings_head(), [accepted])
    world.keep = 100
    world.records = 0
    world.replicate(30, begin=5)
    (kept,) = world.control.accepted_losses()
    assert (kept.bound_t, kept.bound_id) == (50, "first orders")
