"""sweep: files that nothing names are removed after their grace time; files that are named never are."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.clocks import Clock
from tests.support.fault_points import SWEEP
from tests.support.faults import Killed
from tests.support.log_samples import (
    PLAN,
    SEGMENT_BYTES,
    add_binding,
    capture,
    compact,
    given_binding,
    publish_all,
)
from tests.support.log_world import LogWorld, content_of, without_attempts

from tidemark.clock import SECOND
from tidemark.consensus.lease import LEASE
from tidemark.consensus.memory import MemoryConsensus
from tidemark.log.files.folder import StoredFile
from tidemark.log.publish import publish, read_log
from tidemark.log.state.lease import LogHeld, LogLost, take_log
from tidemark.log.state.readers import TERM, Reading
from tidemark.log.sweep import (
    CONDEMNED,
    PLAN_LIFE,
    NamedFiles,
    Swept,
    judge,
    look_for_orphans,
    sweep,
    sweep_log,
)

pytestmark = pytest.mark.unit

FIRST = given_binding(1_000, 0, ("orders", 0, 0, 3))
SECOND_BINDING = given_binding(2_000, 3, ("orders", 0, 3, 5), run_id="run-2")
THIRD = given_binding(3_000, 5, ("orders", 0, 5, 6), run_id="run-3")
GRACE = 3600 * SECOND


@dataclass
class World(LogWorld):
    """A log of two published bindings and one that is captured only."""

    root: Path
    clock: Clock = field(default_factory=Clock)
    consensus: MemoryConsensus = field(default_factory=MemoryConsensus)

    def __post_init__(self) -> None:
        publish_all(
            self.control,
            self.folder,
            {
                FIRST: {("orders", 0): {0: b"a", 1: b"b", 2: b"c"}},
                SECOND_BINDING: {("orders", 0): {3: b"d", 4: b"e"}},
            },
        )
        add_binding(self.control, THIRD)
        capture(self.folder, THIRD, {("orders", 0): {5: b"f"}})

    @property
    def files(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}

    def put(self, path: str) -> str:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(b"left behind")
        return path

    def sweep(self, grace: int = 0) -> Swept:
        return sweep_log(self.control, self.folder, "sweep", grace, self.clock)


@pytest.fixture
def world(tmp_path) -> World:
    return World(tmp_path)


def data(first: int, last: int, plan: str | None = None) -> str:
    return f"files/{first:020d}-{last:020d}{f'-{plan}' if plan else ''}.parquet"


def removed(swept: Swept) -> set[str]:
    return {orphan.path for orphan in swept.removed}


def test_what_the_log_names_and_what_is_not_published_stays(world):
    world.sweep()
    log = read_log(world.control, world.folder)
    kept = {file.path for file in log.files} | {world.control.log_head().manifest}
    kept |= {data(5, 5), f"captured/{THIRD.t:020d}.json"}
    audits = {f"audits/{binding.t:020d}.json" for binding in (FIRST, SECOND_BINDING, THIRD)}
    assert world.files == kept | audits | {CONDEMNED}
    publish(world.control, world.folder, THIRD, SEGMENT_BYTES, 9_000)
    assert world.control.log_head().end == 5


def test_old_manifests_and_records_of_captures_go(world):
    swept = world.sweep()
    assert {path.split("/")[0] for path in removed(swept)} == {"manifests", "captured"}
    assert len(removed(swept)) == 3
    assert world.sweep().removed == ()


def test_after_a_compaction_the_replaced_files_go(world):
    compact(world.control, world.folder, below=5, keep=lambda id_: id_ in (1, 3))
    swept = world.sweep()
    assert {data(0, 2), data(3, 4)} <= removed(swept)
    assert [path for path in world.files if path.startswith("files/")] != []
    assert {path for path in world.files if path.startswith("files/")} == {data(1, 3, PLAN), data(5, 5)}


def test_what_is_condemned_waits_for_its_grace_time_from_the_sweep_that_saw_it_first(world):
    compact(world.control, world.folder, below=5)
    first = world.sweep(GRACE)
    assert (first.removed, len(first.waiting)) == ((), 6)
    world.clock.pass_seconds(3599)
    assert world.sweep(GRACE).removed == ()
    world.clock.pass_seconds(1)
    assert removed(world.sweep(GRACE)) == {orphan.path for orphan in first.waiting}
    assert (world.root / CONDEMNED).read_text() == "{}\n"


def test_a_file_that_is_named_again_is_not_condemned_any_more(world):
    orphan = world.put(data(0, 4, PLAN))
    world.sweep(GRACE)
    hold = take_log(world.control, "compaction", world.clock)
    hold.record_plan(PLAN + "f" * 52)
    hold.release()
    assert orphan not in {one.path for one in world.sweep(GRACE).waiting}
    take_log(world.control, "compaction", world.clock).replace_log(lambda head: head)
    world.clock.pass_seconds(LEASE / SECOND)
    world.clock.pass_seconds(3600)
    swept = world.sweep(GRACE)
    assert orphan in {one.path for one in swept.waiting}


def test_files_of_a_plan_that_is_carried_out_are_no_orphans(world):
    file, staged = world.put(data(0, 4, PLAN)), world.put(f"staging/compact-{PLAN}/part-0.parquet")
    other = world.put(data(0, 4, "f" * 12))
    hold = take_log(world.control, "compaction", world.clock)
    hold.record_plan(PLAN + "0" * 52)
    swept = sweep(world.control, world.folder, hold, 0, world.clock)
    assert {file, staged} <= world.files
    assert other in removed(swept)


def test_a_reader_keeps_its_manifest_and_all_its_files(world):
    reading = Reading(world.control, "verify", world.clock)
    manifest = reading.take_up().manifest
    compact(world.control, world.folder, below=5, keep=lambda id_: False)
    world.sweep()
    assert {manifest, data(0, 2), data(3, 4)} <= world.files
    older = world.folder.read_older_manifest(manifest)
    assert sum(b.num_rows for file in older.files for b in world.folder.read_file(file)) == 5
    reading.release()
    world.sweep()
    assert not {manifest, data(0, 2), data(3, 4)} & world.files


def test_a_reader_that_died_keeps_nothing_after_its_time(world):
    Reading(world.control, "dead", world.clock).take_up()
    compact(world.control, world.folder, below=5, keep=lambda id_: False)
    world.clock.pass_seconds(TERM / SECOND)
    assert data(0, 2) in removed(world.sweep())


def test_a_reader_that_came_back_too_late_stops_no_sweep(world):
    reading = Reading(world.control, "slow", world.clock)
    reading.take_up()
    compact(world.control, world.folder, below=5, keep=lambda id_: False)
    world.clock.pass_seconds(TERM / SECOND)
    world.sweep()
    reading.renew()
    assert world.sweep().removed == ()


def test_what_killed_attempts_left_in_staging_goes_but_not_that_of_an_unpublished_binding(world):
    gone = {
        world.put(f"staging/{2_000:020d}/a/part"),
        world.put("staging/b"),
        world.put("staging/manifests/c"),
    }
    kept = world.put(f"staging/{3_000:020d}/a/part")
    assert gone <= removed(world.sweep())
    assert kept in world.files


def test_what_the_log_did_not_name_is_none_of_its_business(world):
    strange = {
        world.put(path)
        for path in (
            "files/README",
            "files/1-2.parquet",
            "notes.txt",
            "dead_letters/x.json",
            "manifests/x.json",
        )
    }
    world.sweep()
    assert strange <= world.files


def test_a_dry_run_changes_nothing(world):
    compact(world.control, world.folder, below=5)
    before, version = world.files, world.control.log_head().version
    looked = look_for_orphans(world.control, world.folder, 0, world.clock.now)
    assert (world.files, world.control.log_head().version) == (before, version)
    assert looked == world.sweep()
    assert looked.bytes > 0


def test_a_sweep_and_a_compaction_do_not_meet(world):
    take_log(world.control, "compaction", world.clock)
    with pytest.raises(LogHeld):
        world.sweep()


def test_a_sweep_that_has_lost_the_log_removes_nothing_more(world):
    hold = take_log(world.control, "slow", world.clock)
    world.clock.pass_seconds(LEASE / SECOND)
    take_log(world.control, "next", world.clock)
    before = world.files
    with pytest.raises(LogLost):
        sweep(world.control, world.folder, hold, 0, world.clock)
    assert world.files == before


@pytest.mark.parametrize("point", SWEEP)
def test_a_sweep_that_was_killed_is_finished_by_the_next(tmp_path, kill_at, point):
    killed, whole = World(tmp_path / "killed"), World(tmp_path / "whole")
    for each in (killed, whole):
        compact(each.control, each.folder, below=5, keep=lambda id_: id_ == 1)

    kill_at(point)
    with pytest.raises(Killed):
        killed.sweep()
    killed.sweep()
    whole.sweep()
    assert without_attempts(killed.files) == without_attempts(whole.files)
    logs = [read_log(each.control, each.folder) for each in (killed, whole)]
    assert content_of(logs[0]) == content_of(logs[1])


paths = st.one_of(
    st.builds(data, st.integers(0, 9), st.integers(0, 9), st.sampled_from([None, PLAN, "f" * 12])),
    st.builds("manifests/{:020d}-{}".format, st.integers(0, 9), st.just(f"{PLAN}.json")),
    st.builds("captured/{:020d}.json".format, st.integers(0, 9)),
    st.builds("staging/{:020d}/a".format, st.integers(0, 9)),
    st.sampled_from(["staging/x", f"staging/compact-{PLAN}/y", "files/odd", "notes"]),
)


@given(
    st.sets(paths, max_size=30),
    st.sets(paths, max_size=10),
    st.integers(0, 9),
    st.integers(-1, 9),
    st.sampled_from([None, PLAN + "0" * 52]),
    st.integers(0, 5),
    st.data(),
)
def test_nothing_that_is_named_or_not_published_is_ever_touched(stored, named, t, end, plan, grace, drawn):
    condemned = {path: drawn.draw(st.integers(0, 20)) for path in sorted(stored)}
    what_stays = NamedFiles(t, end, frozenset(named), (plan,) if plan else ())
    files = [StoredFile(path, 1) for path in stored]
    swept = judge("orders", files, what_stays, condemned, now=20, grace=grace)
    gone = removed(swept)
    assert not gone & named
    assert all(20 - condemned[path] >= grace for path in gone)
    for path in gone:
        area, _, name = path.partition("/")
        assert area in ("files", "manifests", "captured", "staging")
        if area == "files":
            assert int(name[:20]) <= end
        elif name[:20].isdecimal():
            assert int(name[:20]) <= t
        assert not (plan and PLAN in path and area in ("files", "staging"))
    assert judge("orders", files[::-1], what_stays, condemned, now=20, grace=grace) == swept


@pytest.mark.parametrize("path", [f"plans/{'a' * 64}.json", f"plans/{'a' * 64}.files.json"])
def test_a_plan_stays_long_enough_for_a_person_to_approve_it(path):
    named, stored = NamedFiles(1_000, 2, frozenset()), [StoredFile(path, 1)]
    for now, removed in ((PLAN_LIFE - 1, []), (PLAN_LIFE, [path])):
        swept = judge("orders", stored, named, {path: 0}, now, grace=0)
        assert [orphan.path for orphan in swept.removed] == removed


def test_the_plan_that_is_carried_out_and_what_is_known_to_be_settled_stay():
    named = NamedFiles(1_000, 2, frozenset(), plans=("a" * 64,))
    assert not named.is_orphan(f"plans/{'a' * 64}.json")
    assert not named.is_orphan("plans/settled.json")
    assert named.is_orphan(f"plans/{'b' * 64}.json")
