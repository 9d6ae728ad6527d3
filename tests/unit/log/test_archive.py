"""Bindings leave the control plane: when, in which order, and whatever dies in between."""

from dataclasses import replace

import pytest
from tests.support.archive_world import KEEP, ArchiveWorld
from tests.support.fault_points import ARCHIVE
from tests.support.faults import Killed

from tidemark.faults import AT_ONCE, FaultPoint
from tidemark.log.bindings.archive import Archiving, archive_bindings
from tidemark.log.errors import FileDamaged, FileMissing
from tidemark.log.files.binding_lists import BindingListReader
from tidemark.log.files.folder import Folder
from tidemark.log.model.binding_list import NO_BINDING_LISTS, ListSizes
from tidemark.log.sweep import look_for_orphans, sweep_log
from tidemark.log.verify import LogVerifier

pytestmark = pytest.mark.unit

AROUND_ARCHIVING = (
    *ARCHIVE,
    FaultPoint.PUBLISH_LISTS_WRITTEN,
    FaultPoint.PUBLISH_MANIFEST_WRITTEN,
    FaultPoint.PUBLISH_COMMITTED,
)
"""In the order in which a publication reaches them."""


@pytest.fixture
def world(tmp_path) -> ArchiveWorld:
    return ArchiveWorld(tmp_path)


# When


def test_old_bindings_leave_with_the_rows_of_their_runs(world):
    bindings = world.replicate(30)
    listed = world.lists
    assert listed.count >= 12
    kept = [one for one in bindings if one.base > listed.last_id]
    assert world.rows("t/") == [f"t/{one.t:020d}" for one in kept]
    assert world.rows("run/") == sorted(f"run/{one.run_id}" for one in kept)
    assert all(one.t >= world.now - KEEP - 60 for one in kept)


def test_young_bindings_stay(world):
    world.keep = 10_000
    world.replicate(30)
    assert (world.lists.lines, len(world.rows("t/"))) == ((), 30)


def test_bindings_that_a_consumer_has_not_passed_stay(world):
    world.replicate(6)
    world.replicate(30, begin=6, is_passed=False)
    assert world.lists.last_id <= 5
    assert len(world.rows("t/")) >= 30


def test_bindings_leave_once_the_slowest_consumer_has_passed_them(world):
    world.replicate(30, is_passed=False)
    world.passed = 29
    world.replicate(1, begin=30)
    assert world.lists.last_id >= 12


def test_an_unpublished_binding_and_the_newest_one_stay(world):
    world.keep = 10_000
    world.replicate(9)
    unpublished = world.bind("run-9")
    everything = Archiving(0, lambda: 1_000, sizes=ListSizes(bindings=1, span=1))
    lists = archive_bindings(world.control, str(world.root), world.lists, 90, everything)
    assert (unpublished.base, lists.last_id) == (9, 7)


def test_how_far_consumers_are_is_read_only_when_bindings_are_old(world):
    asked = []
    world.keep = 10_000
    world.replicate(5)
    archiving = Archiving(10_000, lambda: asked.append(1) or 100)
    archive_bindings(world.control, str(world.root), world.lists, world.now, archiving)
    assert asked == []


def test_a_log_of_an_earlier_version_is_archived_a_part_at_a_time(world):
    world.keep = 10_000_000
    world.replicate(40)
    # As a manifest without the entry says it: how old the oldest binding is, is not known.
    unknown = NO_BINDING_LISTS.with_published(world.now, is_first=False)
    archiving = Archiving(KEEP, lambda: world.passed, most=10, sizes=world.sizes)
    first = archive_bindings(world.control, str(world.root), unknown, world.now, archiving)
    again = archive_bindings(world.control, str(world.root), first, world.now, archiving)
    assert (first.last_id, again.last_id) == (7, 15)


def test_a_young_log_of_an_earlier_version_is_looked_at_once(world):
    world.keep = 10_000_000
    world.replicate(3)
    unknown = NO_BINDING_LISTS.with_published(world.now, is_first=False)
    archiving = Archiving(25, lambda: world.passed, sizes=ListSizes(span=1))
    looked = archive_bindings(world.control, str(world.root), unknown, world.now, archiving)
    assert (looked.lines, looked.since) == ((), 10)


def test_the_control_plane_stays_small_however_many_bindings_there_are(tmp_path):
    world = ArchiveWorld(tmp_path, sizes=ListSizes(bindings=100, span=5_000), keep=1_000)
    rows = []
    for _ in range(5):
        world.replicate_many(1_000)
        rows.append((len(world.rows("t/")), len(world.rows("run/"))))
    assert max(rows) <= (100 + 100 + 25, 100 + 100 + 25)
    assert len(world.lists.lines) <= 18
    assert [one.base for one in world.door.every()] == list(range(5_000))


# Crashes


@pytest.mark.parametrize("time", [1, 2, 3])
@pytest.mark.parametrize("point", AROUND_ARCHIVING)
def test_whatever_dies_the_bindings_stay_the_same_and_later_runs_clean_up(
    world, kill_at, monkeypatch, point, time
):
    monkeypatch.setenv(AT_ONCE, "2")
    expected = world.replicate(12)
    reached = kill_at(point, time)
    number = 12
    while number < 60:
        binding = world.bind(f"run-{number}")
        world.passed = binding.end - 1
        if binding not in expected:
            expected.append(binding)
        try:
            world.publish(binding)
            number += 1
        except Killed:
            assert list(world.door.after(-1)) == expected
            assert [world.door.of_run(one.run_id) for one in expected] == expected
    assert reached
    assert list(world.door.after(-1)) == expected
    removed = world.control.bindings_head().removed
    assert removed == world.lists.last_t
    assert len(world.rows("t/")) == len(world.rows("run/")) == len(expected) - world.lists.count


def test_a_publication_that_another_one_outpaced_writes_its_lists_once(world, at_point):
    world.replicate(12)
    expected = list(world.door.after(-1))

    def outpace() -> None:
        head = world.control.log_head()
        world.control.replace_log(head.version, head)

    at_point(FaultPoint.PUBLISH_MANIFEST_WRITTEN, outpace)
    world.replicate(20, begin=12)
    named = {line.path for line in BindingListReader("orders", str(world.root)).every_line(world.lists.lines)}
    stored = {file.path for file in Folder("orders", str(world.root)).walk("bindings")}
    assert named | {f"{path}.runs" for path in named} == stored
    assert list(world.door.after(-1))[:12] == expected


def test_a_run_that_binds_while_rows_are_removed_binds_all_the_same(world, at_point):
    world.replicate(30)
    last = world.rows("t/")[-1]
    head = world.control.bindings_head()

    def remove() -> None:
        oldest = world.control.binding_rows(head.removed, first=True, limit=1)
        world.control.remove_bindings(oldest)

    at_point(FaultPoint.BIND_DECIDED, remove)
    binding = world.bind("late")
    assert binding is not None
    assert world.rows("t/")[-1] == f"t/{binding.t:020d}" != last


# Files that are gone or damaged


def test_a_missing_list_is_refused_with_its_name(world):
    world.replicate(30)
    line = world.lists.lines[0]
    (world.root / line.path).unlink()
    with pytest.raises(FileMissing) as refusal:
        list(world.door.after(-1))
    assert refusal.value.path.endswith(line.path)
    assert next(world.door.after(28)).base == 29


def test_a_damaged_list_is_refused_with_its_name(world):
    world.replicate(30)
    reader = BindingListReader("orders", str(world.root))
    line = next(reader.leaves(world.lists.lines, lambda one: True))
    (world.root / line.path).write_bytes(b"other")
    with pytest.raises(FileDamaged) as refusal:
        list(world.door.after(-1))
    assert refusal.value.path.endswith(line.path)


@pytest.mark.parametrize("damage", ["missing", "cut", "changed"])
def test_a_run_is_never_bound_again_because_an_index_is_gone(world, damage):
    world.replicate(30)
    path = world.root / world.lists.lines[-1].runs_path
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(data[:-8] if damage == "cut" else data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(FileMissing if damage == "missing" else FileDamaged):
        world.bind("new")


def test_a_publication_goes_on_where_lists_cannot_be_read(world):
    world.replicate(30)
    for line in world.lists.lines:
        (world.root / line.runs_path).unlink()
        (world.root / line.path).unlink()
    head = world.control.bindings_head()
    assert head.removed > 0
    binding = replace(world.door.at(head.newest), t=head.newest + 10, base=30, run_id="next")
    binding = replace(binding, slices=(replace(binding.slices[0], lower=30, upper=31),))
    world.control.add_binding(head, binding)
    world.now, world.passed = binding.t, 30
    world.publish(binding)
    assert world.control.log_head().end == 30


# Verification and sweep


def test_the_verification_counts_and_verifies_lists(world):
    world.replicate(40)
    found = verified(world)
    assert (found.problems, found.bindings, found.archived) == ((), 40, world.lists.count)


@pytest.mark.parametrize("level", [0, 1])
def test_the_verification_names_a_list_that_is_damaged(world, level):
    world.replicate(40)
    reader = BindingListReader("orders", str(world.root))
    line = next(one for one in reader.every_line(world.lists.lines) if one.level == level)
    (world.root / line.path).write_bytes(b"other")
    assert any(line.path in problem for problem in verified(world).problems)


def test_the_verification_finds_runs_that_an_index_lacks(world):
    world.replicate(40)
    reader = BindingListReader("orders", str(world.root))
    one, other, *_ = reader.leaves(world.lists.lines, lambda line: True)
    (world.root / one.runs_path).write_bytes((world.root / other.runs_path).read_bytes())
    assert verified(world).problems == (f"{one.runs_path} has other runs than {one.path}",)


def test_a_sweep_keeps_every_list_and_removes_those_of_a_publication_that_died(world, kill_at):
    world.replicate(12)
    kill_at(FaultPoint.PUBLISH_LISTS_WRITTEN)
    died = False
    for number in range(12, 40):
        binding = world.bind(f"run-{number}")
        world.passed = binding.end
        before = {file.path for file in Folder("orders", str(world.root)).walk("bindings")}
        try:
            world.publish(binding)
        except Killed:
            left = {file.path for file in Folder("orders", str(world.root)).walk("bindings")} - before
            died = died or bool(left)
            assert not [one for one in orphans(world) if one in left]
            world.publish(binding)
            if left:
                assert left <= set(orphans(world))
        if not died and number < 38:
            kill_at(FaultPoint.PUBLISH_LISTS_WRITTEN)
    assert died
    sweep_log(world.control, world.folder, "ann", 0)
    assert verified(world).problems == ()
    assert [one.base for one in world.door.after(-1)] == list(range(40))


def orphans(world: ArchiveWorld) -> list[str]:
    found = look_for_orphans(world.control, world.folder, 0, 1)
    return [one.path for one in (*found.removed, *found.waiting) if one.path.startswith("bindings/")]


def verified(world: ArchiveWorld):
    verifier = LogVerifier(world.control, world.folder)
    assert list(verifier.files()) == []
    return verifier.conclude()
