"""The steps of a compaction on files and a control plane: what is published, refused, repeated and left."""

from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.compaction_samples import (
    LATEST,
    PROGRESS,
    of_keys,
    of_namespaces,
)
from tests.support.compaction_world import HOUR, World, given_journal, given_latest
from tests.support.log_world import content_of, without_attempts

from tidemark.compaction import drops
from tidemark.compaction.compact import Compacted
from tidemark.compaction.errors import NeverCompacted, NoPlan, NotConserved, PlanOutdated
from tidemark.compaction.plan import CompactionPlan
from tidemark.faults import FaultPoint
from tidemark.log.errors import FileDamaged, FileMissing
from tidemark.log.files import row_groups
from tidemark.log.state.compactions import CompactionOutcome, compactions
from tidemark.log.state.lease import LogHeld, read_lease, take_log
from tidemark.log.state.pins import Pin, add_pin

pytestmark = pytest.mark.unit


def rows_of(world: World) -> dict[int, dict]:
    """Every message of the log, whole."""
    found = (row for file in world.log.files for b in world.folder.read_file(file) for row in b.to_pylist())
    return {row["id"]: row for row in found}


def test_a_journal_is_compacted(tmp_path):
    world = given_journal(tmp_path)
    done = world.compact()
    assert isinstance(done, Compacted)
    assert world.ids() == [4, 5, 7, 8]
    assert (world.log.compacted_below, world.log.policies, world.log.end) == (8, ("journal",), 8)
    assert (done.messages_before, done.messages_after) == (9, 4)


def test_a_journal_of_many_batches_is_compacted_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(row_groups, "ROWS_AT_ONCE", 1)
    monkeypatch.setattr(drops, "ROWS_AT_ONCE", 2)
    world = given_journal(tmp_path)
    world.compact()
    assert world.ids() == [4, 5, 7, 8]


def test_G1_a_writer_inside_a_binding_holds_the_whole_binding_back(tmp_path):
    """It was stopped there, and is given the binding whole again."""
    world = World(tmp_path, LATEST)
    for text in ("a a", "a a a", "a", "z"):
        world.publish(*of_keys(text))
    world.move(3)
    world.control.advance_upper(world.control.bindings_head(), world.control.bindings_head().upper + 2 * HOUR)
    world.compact()
    assert world.ids() == [1, 2, 3, 4, 5, 6]


def test_G3_what_stays_is_the_same_to_the_byte(tmp_path):
    world = given_latest(tmp_path, "a b a -c", "b c d")
    before = rows_of(world)
    world.compact()
    after = rows_of(world)
    assert after
    assert after == {id_: before[id_] for id_ in after}
    for file in world.log.files:
        ids = [i for batch in world.folder.read_file(file, ["id"]) for i in batch["id"].to_pylist()]
        assert ids == sorted(ids)


@settings(max_examples=25)
@given(st.lists(st.text("abc", min_size=1, max_size=5), min_size=1, max_size=4), st.data())
def test_G3_what_stays_is_the_same_to_the_byte_whatever_stays(tmp_path_factory, bindings, data):
    world = given_latest(tmp_path_factory.mktemp("log"), *(" ".join(text) for text in bindings))
    before = rows_of(world)
    for id_ in data.draw(st.sets(st.sampled_from(sorted(before)), max_size=2)):
        add_pin(world.control, Pin(id_, "ann", "evidence", world.now))
    world.compact()
    after = rows_of(world)
    assert after == {id_: before[id_] for id_ in after}


def test_G5_new_files_have_new_names_and_the_old_ones_are_untouched(tmp_path):
    world = given_latest(tmp_path, "a b a", "b a")
    before = world.stored()
    plan = world.compact().plan
    after = world.stored()
    assert {name: after[name] for name in before} == before
    (new,) = (name for name in after if name.startswith("files/") and name not in before)
    assert new == f"files/{3:020d}-{4:020d}-{plan.digest[:12]}.parquet"


def test_a_compacted_file_has_the_logs_own_encoding_and_knows_its_bindings(tmp_path):
    world = given_latest(tmp_path, "a b a", "c a")
    world.compact()
    (file,) = (one for one in world.log.files if one.first_t != one.t)
    assert (file.first_id, file.last_id, file.count) == (1, 4, 3)
    metadata = pq.read_metadata(tmp_path / file.path)
    assert metadata.row_group(0).column(0).compression == "ZSTD"


def test_G6_a_reader_that_opened_the_log_before_reads_the_old_files_to_their_end(tmp_path):
    world = given_latest(tmp_path, "a b a", "b a")
    before = world.log
    world.compact()
    found = [i for f in before.files for b in world.folder.read_file(f, ["id"]) for i in b["id"].to_pylist()]
    assert found == [0, 1, 2, 3, 4, 5]


def test_G7_T51_a_second_run_does_nothing(tmp_path):
    world = given_latest(tmp_path, "a b a", "b a")
    world.compact()
    before = world.stored()
    again = world.compact()
    assert isinstance(again, CompactionPlan)
    assert again.is_empty
    assert world.stored() == before
    assert [one.outcome for one in compactions(world.control)] == [
        CompactionOutcome.COMPACTED,
        CompactionOutcome.NOTHING_TO_DO,
    ]


def test_G7_a_second_run_after_a_compaction_of_a_journal_does_not_even_look(tmp_path):
    world = given_journal(tmp_path)
    world.compact()

    class Blind:
        def survey(self, place, rules, files):
            assert not files
            return world_engine.survey(place, rules, files)

    world_engine, world.engine = world.engine, Blind()
    assert world.compact().is_empty


def test_G13_what_is_settled_or_held_back_needs_no_spark(tmp_path):
    world = given_journal(tmp_path)
    assert not world.compaction().is_idle()
    world.compact()
    assert world.compaction().is_idle()
    blocked = World(tmp_path / "blocked", LATEST)
    for text in ("a a", "z"):
        blocked.publish(*of_keys(text))
    assert blocked.compaction().is_idle()


def test_G7_the_same_plan_gives_the_same_bytes(tmp_path):
    stored = []
    for name in ("one", "two"):
        world = given_journal(tmp_path / name)
        world.compact(name)
        found = world.stored()
        data = {path: digest for path, digest in found.items() if path.startswith("files/")}
        stored.append((data, without_attempts(found), content_of(world.log)))
    assert stored[0] == stored[1]


def test_a_second_compaction_includes_what_the_first_has_left(tmp_path):
    world = given_latest(tmp_path, "a b a", "b a")
    world.compact()
    world.publish(*of_keys("a b y"))
    world.publish(*of_keys("x"))
    world.move(world.control.log_head().end)
    world.control.advance_upper(world.control.bindings_head(), world.control.bindings_head().upper + 2 * HOUR)
    world.compact()
    assert world.ids() == [5, 6, 7, 8, 9]


def test_G8_what_capture_publishes_meanwhile_stays(tmp_path):
    world = given_latest(tmp_path, "a b a", "b a")
    work = world.compaction()
    plan = work.plan("run")
    work.write(plan.digest, "run")
    world.publish(*of_keys("new"))
    work.publish(plan.digest, "run", world.now)
    assert world.ids() == [3, 4, 5, 6]
    assert world.log.end == 6


def test_G8_only_one_compaction_at_a_time(tmp_path):
    world = given_latest(tmp_path, "a b a")
    take_log(world.control, "somebody", lambda: world.now)
    with pytest.raises(LogHeld, match="somebody has the log"):
        world.compact()
    assert world.ids() == [0, 1, 2, 3]


def test_the_lease_stays_from_the_plan_to_the_publication_and_then_goes(tmp_path):
    world = given_latest(tmp_path, "a b a")
    work = world.compaction()
    plan = work.plan("run")
    assert read_lease(world.control).lease.holder == "run"
    assert read_lease(world.control).plan == plan.digest
    work.write(plan.digest, "run")
    work.verify(plan.digest, "run")
    assert read_lease(world.control).lease is not None
    work.publish(plan.digest, "run", world.now)
    assert (read_lease(world.control).lease, read_lease(world.control).plan) == (None, None)


def test_publishing_twice_publishes_once(tmp_path):
    world = given_latest(tmp_path, "a b a")
    work = world.compaction()
    plan = work.plan("run")
    work.write(plan.digest, "run")
    first = work.publish(plan.digest, "run", world.now)
    version = world.control.log_head().manifest
    again = work.publish(plan.digest, "run", world.now)
    assert world.control.log_head().manifest == version
    assert (again.messages_before, again.messages_after) == (first.messages_before, first.messages_after)


def test_G1_a_plan_is_refused_when_a_writer_went_back_while_it_was_approved(tmp_path):
    world = given_latest(tmp_path, "a b a", "c a")
    work = world.compaction()
    plan = work.plan("run")
    work.give_back("run")
    world.positions.register("late", {})
    with pytest.raises(PlanOutdated, match="late holds the watermark at 0 now"):
        work.write(plan.digest, "run")
    assert world.ids() == [0, 1, 2, 3, 4, 5]


def test_a_plan_is_refused_when_a_pin_was_set_while_it_was_approved(tmp_path):
    world = given_latest(tmp_path, "a b a", "c a")
    work = world.compaction()
    plan = work.plan("run")
    work.give_back("run")
    add_pin(world.control, Pin(0, "ann", "evidence", world.now))
    with pytest.raises(PlanOutdated, match="id 0 is pins since"):
        work.write(plan.digest, "run")


def test_a_plan_whose_notes_were_swept_while_it_was_approved_is_carried_out_all_the_same(tmp_path):
    world = given_journal(tmp_path)
    work = world.compaction()
    plan = work.plan("run")
    work._place(plan.digest).remove()
    work.write(plan.digest, "run")
    work.verify(plan.digest, "run")
    work.publish(plan.digest, "run", world.now)
    assert world.ids() == [4, 5, 7, 8]


def test_a_plan_that_was_never_made_is_refused(tmp_path):
    with pytest.raises(NoPlan):
        given_journal(tmp_path).compaction().write("f" * 64, "run")


def test_pins_of_the_control_plane_stay(tmp_path):
    world = given_latest(tmp_path, "a b a", "b a")
    add_pin(world.control, Pin(0, "ann", "evidence", world.now))
    world.compact()
    assert world.ids() == [0, 3, 4, 5]


def test_G1_a_writer_of_the_file_that_never_ran_blocks_everything(tmp_path):
    world = World(tmp_path, LATEST)
    for text in ("a a", "a a", "z"):
        world.publish(*of_keys(text))
    plan = world.compaction().look()
    assert (plan.is_empty, plan.held_back_by) == (True, "w")


def test_min_lag_counts_from_the_first_time_not_yet_bound(tmp_path):
    world = World(tmp_path, PROGRESS, min_lag=2 * HOUR)
    for text in ("A A", "A A", "A A", "A"):
        world.publish(*of_namespaces(text))
    world.move(6)
    plan = world.compaction().look()
    assert (plan.watermark.id, plan.held_back_by) == (4, "min_lag")


def test_G11_looking_changes_nothing(tmp_path):
    world = given_journal(tmp_path)
    before, head = world.stored(), world.control.log_head()
    looked = world.compaction().look()
    assert (world.stored(), world.control.log_head()) == (before, head)
    assert world.compaction().plan("run") == looked


@pytest.mark.parametrize("point", [FaultPoint.COMPACT_PLANNED, FaultPoint.COMPACT_FILE_STAGED])
def test_G11_looking_does_not_disturb_a_compaction_that_asks_the_same(tmp_path, at_point, point):
    world = given_journal(tmp_path)
    at_point(point, lambda: world.compaction().look())
    world.compact()
    assert world.ids() == [4, 5, 7, 8]


def test_G12_the_manifest_says_below_which_id_it_is_compacted(tmp_path):
    world = given_latest(tmp_path, "a b a", "b a")
    world.compact()
    assert world.control.log_head().compacted_below == world.log.compacted_below == 5


def test_T41_nothing_transient_is_left(tmp_path):
    world = given_latest(tmp_path, "a b a", "b a")
    world.compact()
    assert not [name for name in world.stored() if name.startswith("staging/")]


def test_T42_T44_what_a_dead_run_has_left_is_swept_and_no_part_of_the_log(tmp_path):
    world = given_latest(tmp_path, "a b a", "b a")
    work = world.compaction()
    plan = work.plan("dead")
    work.write(plan.digest, "dead")
    world.publish(*of_keys("a"))
    world.publish(*of_keys("y"))
    world.move(world.control.log_head().end)
    world.now += 10 * HOUR
    world.control.advance_upper(world.control.bindings_head(), world.control.bindings_head().upper + 2 * HOUR)

    world.compact("alive")
    world.sweep()

    assert {name for name in world.stored() if name.startswith("files/")} == {f.path for f in world.log.files}
    assert not [name for name in world.stored() if name.startswith("staging/")]


def test_T43_a_file_that_is_missing_is_refused_by_name(tmp_path):
    world = given_latest(tmp_path, "a b a", "b a")
    gone = next(iter(world.log.files)).path
    (tmp_path / gone).unlink()
    with pytest.raises(FileMissing, match=gone):
        world.compact()
    assert world.log.compacted_below == 0


def test_G9_a_damaged_file_is_refused_and_the_old_set_stays(tmp_path):
    world = given_latest(tmp_path, "a b a", "b a")
    path = tmp_path / next(iter(world.log.files)).path
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileDamaged):
        world.compact()
    assert world.log.compacted_below == 0


def test_G9_a_new_file_that_was_damaged_before_the_swap_is_refused(tmp_path):
    world = given_latest(tmp_path, "a b a", "b a")
    work = world.compaction()
    plan = work.plan("run")
    (file,) = work.write(plan.digest, "run")
    path = tmp_path / file.path
    path.write_bytes(path.read_bytes()[:-9] + b"x" * 9)
    with pytest.raises(FileDamaged):
        work.verify(plan.digest, "run")


def test_G10_a_new_file_that_lacks_a_message_is_refused(tmp_path):
    world = given_latest(tmp_path, "a b a", "b a")

    class Forgetful:
        def survey(self, *given):
            return honest.survey(*given)

        def rewrite(self, place, plan):
            return [replace(file, count=file.count - 1) for file in honest.rewrite(place, plan)]

        def count_differences(self, place, plan, outputs):
            return 0

    honest, world.engine = world.engine, Forgetful()
    with pytest.raises(NotConserved, match="2 messages stay, and 1 were written"):
        world.compact()
    assert world.log.compacted_below == 0


def test_G17_what_was_reclaimed_and_who_was_in_the_way_is_kept(tmp_path):
    world = given_latest(tmp_path, "a b a", "b a")
    world.move(5)
    done = world.compact("run")
    (record,) = compactions(world.control)
    assert (record.outcome, record.policy, record.by, record.watermark) == ("compacted", "latest", "run", 5)
    assert record.bytes_reclaimed == done.bytes_before - done.bytes_after
    assert record.held_back_by == "w"


def test_G17_a_refusal_is_kept_with_its_reason(tmp_path):
    world = given_latest(tmp_path, "a b a")
    world.compaction().record_refusal("run", "somebody else has the log")
    (record,) = compactions(world.control)
    assert (record.outcome, record.reason) == ("refused", "somebody else has the log")


def test_G18_a_compaction_that_fails_leaves_positions_and_publication_alone(tmp_path):
    world = given_latest(tmp_path, "a b a", "b a")

    class Broken:
        def survey(self, *given):
            raise RuntimeError("out of memory")

    before = world.positions.load("w")
    world.engine = Broken()
    with pytest.raises(RuntimeError):
        world.compact()
    assert world.positions.load("w") == before
    world.publish(*of_keys("goes on"))
    assert world.log.end == 7


def test_a_log_whose_policy_is_none_is_never_compacted(tmp_path):
    world = given_latest(tmp_path, "a a")
    world.policy = "none"
    with pytest.raises(NeverCompacted):
        world.compact()


def test_T48_an_empty_log_takes_messages_afterwards(tmp_path):
    world = World(tmp_path, LATEST)
    assert world.compact().is_empty
    world.publish(*of_keys("a"))
    assert world.ids() == [0]


def test_i16_a_new_writer_blocks_a_log_that_is_whole_and_not_one_that_refuses_it(tmp_path):
    """Item 16: a files writer that could never begin held compaction back for ever."""
    world = given_latest(tmp_path, "a a b")
    asked = world.questions()
    questions = replace(
        asked, settings=replace(asked.settings, writers=("archive", "w"), needing_all=("archive",))
    )
    assert questions.find_positions() == {"archive": -1, "w": 3}
    world.compact()
    assert questions.find_positions() == {"w": 3}
    assert questions.ask().watermark.held_back_by != "archive"
