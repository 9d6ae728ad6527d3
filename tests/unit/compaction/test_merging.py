"""merge: small files of closed segments become larger ones; messages, ids and marks stay as they are."""

from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.support.compaction_samples import LATEST, Sent, of_keys
from tests.support.compaction_world import HOUR, World, given_latest
from tests.support.fault_points import MERGE
from tests.support.faults import Killed
from tests.support.log_world import content_of, without_attempts

from tidemark.compaction import rewrite
from tidemark.compaction.errors import NotConserved
from tidemark.compaction.merging import choice
from tidemark.compaction.merging.choice import WorkLimit, choose_work, settled_by
from tidemark.compaction.merging.merge import Merged, Merging, merge_small_files
from tidemark.compaction.plan import merged_groups
from tidemark.consensus.objects import Change
from tidemark.faults import FaultPoint
from tidemark.log.model import manifest as manifest_module
from tidemark.log.model.manifest import LogFile, Manifest, Segment
from tidemark.log.state.lease import LogLost, read_lease, take_log
from tidemark.log.state.readers import Reading

pytestmark = pytest.mark.unit

FILE_BYTES = 10**6
POINTS = (*MERGE, FaultPoint.COMPACT_FILE_STAGED, FaultPoint.COMPACT_FILE_NAMED)
"""Merging and compaction write files by the same function."""


@pytest.fixture(autouse=True)
def small_segments(monkeypatch) -> None:
    """Segments close at four files: two bindings of two partitions."""
    monkeypatch.setattr(manifest_module, "MAX_FILES_PER_SEGMENT", 4)


def given_small_files(root, bindings: int = 7) -> World:
    world = World(root, "none", segment_bytes=FILE_BYTES)
    for number in range(bindings):
        world.publish(
            Sent(b"a", b"%d" % number), Sent(b"b", b"%d" % number, partition=1), Sent(b"c", partition=1)
        )
    world.move(world.log.end)
    return world


def merging(world: World) -> Merging:
    return Merging(world.control, str(world.root), FILE_BYTES, lambda: world.now)


def shapes(manifest: Manifest) -> list[list[tuple[int, int, int]]]:
    """Partition, first and last id of the files, segment by segment."""
    return [[(f.partition, f.first_id, f.last_id) for f in s.files] for s in manifest.segments]


def messages(world: World) -> pa.Table:
    batches = [batch for file in world.log.files for batch in world.folder.read_file(file)]
    return pa.Table.from_batches(batches).sort_by("id").combine_chunks()


def test_the_files_of_every_closed_segment_become_one_for_each_partition(tmp_path):
    world = given_small_files(tmp_path)
    before = messages(world)
    done = merging(world).merge("run")
    assert (done.files_before, done.files_after, done.segments_before, done.segments_after) == (12, 6, 3, 3)
    assert shapes(world.log) == [
        [(0, 0, 3), (1, 1, 5)],
        [(0, 6, 9), (1, 7, 11)],
        [(0, 12, 15), (1, 13, 17)],
        [(0, 18, 18), (1, 19, 20)],
    ]
    assert messages(world).equals(before)


def test_a_merge_leaves_the_marks_of_compactions_as_they_are(tmp_path):
    world = given_small_files(tmp_path)
    merging(world).merge("run")
    head = world.control.log_head()
    assert (world.log.compacted_below, world.log.policies, head.compacted_below) == (0, (), 0)
    assert (head.end, head.count, head.segments) == (20, 21, 4)


def test_a_second_merge_finds_nothing_and_takes_no_lease(tmp_path):
    world = given_small_files(tmp_path)
    merging(world).merge("run")
    version = world.control.log_head().version
    assert merging(world).merge("run") == Merged()
    assert world.control.log_head().version == version


def test_looking_changes_nothing(tmp_path):
    world = given_small_files(tmp_path)
    before, head = world.stored(), world.control.log_head()
    found = merging(world).look()
    assert (found.files_before, found.files_after) == (12, 6)
    assert (world.stored(), world.control.log_head()) == (before, head)


def test_one_call_does_a_limited_amount_of_work(tmp_path):
    world = given_small_files(tmp_path)
    limit = WorkLimit(files=5)
    assert merging(world).merge("run", limit).segments_before == 1
    assert merging(world).merge_all("run", limit).segments_before == 2
    assert world.log.file_count == 8


def test_a_log_that_another_process_holds_is_left_to_it(tmp_path):
    world = given_small_files(tmp_path)
    take_log(world.control, "compaction", lambda: world.now)
    done = merge_small_files(world.control, str(world.root), FILE_BYTES, "follow", clock=lambda: world.now)
    assert (done.is_nothing, done.held_by) == (True, "compaction")
    assert world.log.file_count == 14


def test_segments_of_a_plan_that_waits_for_approval_are_left_alone(tmp_path):
    world = given_latest(tmp_path, "a b a", "b a")
    plan = world.compaction().plan("run")
    world.compaction().give_back("run")
    for _ in range(4):
        world.publish(*of_keys("n"))
    world.segment_bytes = FILE_BYTES
    for _ in range(8):
        world.publish(*of_keys("n"))
    merging(world).merge_all("follow")
    assert read_lease(world.control).plan == plan.digest
    world.compaction().write(plan.digest, "run")
    world.compaction().verify(plan.digest, "run")
    world.compaction().publish(plan.digest, "run", world.now)
    assert world.ids()[:2] == [3, 4]


def test_a_compaction_whose_files_were_merged_since_is_done(tmp_path, kill_at):
    world = World(tmp_path, LATEST, segment_bytes=1)
    for text in ("a b c", "b a d", "c e", "a d", "b e", "f", "z"):
        world.publish(*of_keys(text))
    world.move(world.log.end)
    world.control.advance_upper(world.control.bindings_head(), world.control.bindings_head().upper + 2 * HOUR)
    work = world.compaction()
    plan = work.plan("run")
    work.write(plan.digest, "run")
    work.verify(plan.digest, "run")
    kill_at(FaultPoint.COMPACT_COMMITTED)
    with pytest.raises(Killed):
        work.publish(plan.digest, "run", world.now)
    world.now += 10 * HOUR
    for number in range(choice.ALONE + choice.NEIGHBOURS):
        world.publish(*of_keys(f"y{number} z{number}"))
    outputs = {file.path for file in world.log.files}
    Merging(world.control, str(world.root), 10**6, lambda: world.now).merge_all("follow")
    written = {file.path for file in work.write(plan.digest, "run")}
    assert written <= outputs
    assert written.isdisjoint(file.path for file in world.log.files)
    before = world.ids()
    again = work.publish(plan.digest, "run", world.now)
    assert (again.messages_after, world.ids()) == (len(before), before)


def test_what_compaction_does_is_the_same_after_a_merge(tmp_path):
    logs = []
    for name in ("merged", "not"):
        world = World(tmp_path / name, LATEST, segment_bytes=FILE_BYTES)
        for text in ("a b a", "b a", "c", "a d", "b e", "f", "z"):
            world.publish(*of_keys(text))
        world.move(world.log.end)
        world.control.advance_upper(
            world.control.bindings_head(), world.control.bindings_head().upper + 2 * HOUR
        )
        if name == "merged":
            assert not merging(world).merge("run").is_nothing
        world.compact()
        logs.append((world.ids(), world.log.compacted_below, world.log.policies, messages(world)))
    assert logs[0][:3] == logs[1][:3]
    assert logs[0][3].equals(logs[1][3])


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("again", ["killed", "other"], ids=["the same process again", "another one"])
def test_a_merge_that_was_killed_is_finished_by_the_next(tmp_path, kill_at, point, again):
    world, whole = given_small_files(tmp_path / "killed"), given_small_files(tmp_path / "whole")
    kill_at(point)
    with pytest.raises(Killed):
        merging(world).merge("killed")
    if again == "other":
        world.now += HOUR
    merging(world).merge(again)
    merging(whole).merge("run")
    for each in (world, whole):
        each.now += 10 * HOUR
        each.sweep()
    assert content_of(world.log) == content_of(whole.log)
    assert without_attempts(world.stored()) == without_attempts(whole.stored())


@pytest.mark.parametrize("asked", range(1, 8))
def test_a_merge_that_is_asked_to_stop_ends_between_two_groups_of_files_and_publishes_nothing(
    tmp_path, asked
):
    world, whole = given_small_files(tmp_path / "asked"), given_small_files(tmp_path / "whole")
    before, times = world.log, iter(range(100))
    merged = merging(world).merge("asked", is_over=lambda: next(times) >= asked)
    assert merged.is_nothing
    assert next(times) == asked + 1, "it went on"
    assert (world.log, read_lease(world.control).lease) == (before, None)
    merging(world).merge("next")
    merging(whole).merge("run")
    for each in (world, whole):
        each.now += 10 * HOUR
        each.sweep()
    assert content_of(world.log) == content_of(whole.log)
    assert without_attempts(world.stored()) == without_attempts(whole.stored())


@pytest.mark.parametrize("point", POINTS)
def test_what_is_published_at_any_point_stays(tmp_path, at_point, point):
    world = given_small_files(tmp_path)
    at_point(point, lambda: world.publish(Sent(b"new")))
    merging(world).merge("run")
    assert world.ids() == list(range(22))
    assert world.control.log_head().count == 22


@pytest.mark.parametrize("point", POINTS)
def test_a_merge_that_was_overtaken_stops_and_the_other_one_counts(tmp_path, at_point, point):
    world = given_small_files(tmp_path)

    def overtake() -> None:
        world.now += HOUR
        merging(world).merge("overtaking")

    at_point(point, overtake)
    with suppress(LogLost):
        merging(world).merge("slow")
    assert world.ids() == list(range(21))
    assert world.log.file_count == 8


@pytest.mark.parametrize("point", POINTS)
def test_a_reader_of_any_moment_finishes_on_what_it_opened(tmp_path, at_point, point):
    world = given_small_files(tmp_path)
    opened: list[Manifest] = []

    def open_log() -> None:
        Reading(world.control, "reader", lambda: world.now).take_up()
        opened.append(world.log)

    at_point(point, open_log)
    merging(world).merge("run")
    world.sweep()
    world.sweep()
    read = [
        id_ for f in opened[0].files for b in world.folder.read_file(f, ["id"]) for id_ in b["id"].to_pylist()
    ]
    assert sorted(read) == list(range(21))


def test_a_message_that_would_be_changed_is_refused(tmp_path, monkeypatch):
    world = given_small_files(tmp_path)
    before = world.control.log_head().manifest
    honest = rewrite.kept_messages

    def changed(place, rules, group):
        for batch in honest(place, rules, group):
            keys = pa.array([b"other"] * batch.num_rows, pa.binary())
            yield batch.set_column(batch.schema.get_field_index("key"), batch.schema.field("key"), keys)

    monkeypatch.setattr(rewrite, "kept_messages", changed)
    with pytest.raises(NotConserved, match="messages were changed"):
        merging(world).merge("run")
    assert world.control.log_head().manifest == before


def test_a_merge_that_lost_three_races_makes_publications_wait(tmp_path):
    world = given_small_files(tmp_path)
    raced, waited = [], []

    def race() -> None:
        if read_lease(world.control).swap_until > world.now:
            waited.append(True)
        else:
            raced.append(world.publish(Sent(b"new")))
            world.consensus.before_next_commit = arm

    def arm() -> None:
        race()

    at_manifest = []
    real = type(world.folder).write_manifest

    def write_manifest(self, manifest, plan=None):
        found = real(self, manifest, plan)
        if plan is not None:
            at_manifest.append(manifest)
            race()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.folder), "write_manifest", write_manifest)
        merging(world).merge("run")
    assert (len(raced), len(waited)) == (3, 1)
    assert read_lease(world.control).swap_until == 0
    assert world.ids() == list(range(24))


# Which segments


def given_leaf(number: int, files: int = 4, size: int = 100, partitions: int = 4) -> Segment:
    first = 1_000 * number
    return Segment(
        tuple(
            LogFile(f"f{number}-{n}", number, "t", n % partitions, first + n, first + n, 1, size, f"{n}")
            for n in range(files)
        )
    )


def test_old_segments_of_a_similar_size_are_merged_into_one():
    leaves = [given_leaf(number) for number in range(choice.ALONE + 20)]
    work = choose_work(leaves, FILE_BYTES, WorkLimit())
    assert work is not None
    assert work.groups == (tuple(leaves[:20]),)


def given_topics_in_turn() -> list[Segment]:
    """Segments that share no partition, and then, of the same size, segments of one partition."""
    apart = [given_leaf(number, files=1, partitions=1) for number in range(30)]
    apart = [Segment((replace(leaf.files[0], partition=9 + n),)) for n, leaf in enumerate(apart)]
    return [*apart, *(given_leaf(100 + n, files=1, partitions=1) for n in range(choice.ALONE + 20))]


def test_old_segments_with_nothing_to_merge_do_not_keep_later_ones_from_being_merged():
    leaves, settled = given_topics_in_turn(), set()
    groups = []
    while not groups:
        work = choose_work(leaves, FILE_BYTES, WorkLimit(files=10), settled)
        assert work is not None
        groups = merged_groups([file for leaf in work.leaves for file in leaf.files], FILE_BYTES)
        settled.update(settled_by(work))
    assert work.leaves == tuple(leaves[30:40])
    assert choose_work(leaves[:94], FILE_BYTES, WorkLimit(files=10), settled) is None


def test_the_newest_segments_are_never_merged_with_each_other():
    leaves = [given_leaf(number) for number in range(choice.ALONE + choice.NEIGHBOURS - 1)]
    assert choose_work(leaves, FILE_BYTES, WorkLimit()) is None


def test_a_large_old_segment_is_not_rewritten_for_a_few_small_ones():
    leaves = [given_leaf(0, size=100_000), *(given_leaf(number) for number in range(1, choice.ALONE + 12))]
    work = choose_work(leaves, FILE_BYTES, WorkLimit())
    assert work is not None
    assert leaves[0] not in work.leaves


def test_after_an_hour_of_rounds_there_are_few_files(monkeypatch):
    """A round a second, four partitions; a merge every minute."""
    monkeypatch.setattr(manifest_module, "MAX_FILES_PER_SEGMENT", 200)
    log, most = Manifest("orders"), 0
    rewritten = 0
    for second in range(1, 4 * 3600 + 1):
        first = 40 * second
        files = [
            LogFile(f"{second}-{p}", second, "t", p, first + 10 * p, first + 10 * p + 9, 10, 2_000, "d")
            for p in range(4)
        ]
        log = log.with_binding(second, first + 39, files, 10**9)
        if second % 60 == 0:
            while work := choose_work(tuple(log.leaves()), 10**9, WorkLimit()):
                log, size = merged_without_files(log, work)
                rewritten += size
        if second % 3600 == 0:
            most = max(most, log.file_count)
            assert log.file_count <= log.segment_count * 4 * 2
            assert log.closed_file_count <= log.closed_segment_count * 4 * 2
            assert len(log.active.files) <= manifest_module.MAX_FILES_PER_SEGMENT + 3
    assert log.count == 4 * 3600 * 40
    assert rewritten <= 4 * log.bytes


def merged_without_files(log: Manifest, work) -> tuple[Manifest, int]:
    segments, size = [], 0
    for group in work.groups:
        files = [file for leaf in group for file in leaf.files]
        new = []
        for one in merged_groups(files, 10**9):
            first, last = one.files[0], one.files[-1]
            new.append(
                replace(
                    first,
                    path=f"{first.path}+{len(one.files)}",
                    t=last.t,
                    last_id=last.last_id,
                    count=one.kept,
                    bytes=one.bytes,
                )
            )
            size += one.bytes
        segments.append(Segment(tuple(sorted(new, key=lambda f: f.first_id))))
    begin = log.closed.index(work.leaves[0])
    closed = [*log.closed[:begin], *segments, *log.closed[begin + len(work.leaves) :]]
    return log.with_segments(closed, log.active), size


def test_every_point_of_a_merge_is_walked():
    assert len(MERGE) == 7


def test_a_change_of_another_row_does_not_write_the_manifest_again(tmp_path):
    world = given_small_files(tmp_path)
    written = []
    real = type(world.folder).write_manifest

    def write_manifest(self, manifest, plan=None):
        written.append(plan)
        world.control.amend_log(["other"], lambda _: (Change({"other": "1"}), None))
        return real(self, manifest, plan)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.folder), "write_manifest", write_manifest)
        merging(world).merge("run")
    assert len(written) == 1
