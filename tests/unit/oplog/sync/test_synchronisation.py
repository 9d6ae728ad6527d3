"""Whole synchronisations, step by step: what is sent, verified and reported."""

from pathlib import Path

import pytest
from tests.support.operation_topic import operation
from tests.support.sync_world import START, SyncWorld, events_of

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.operations.corrections import CORRECTION_HEADER, Correction
from tidemark.oplog.sync.errors import (
    CollectionBehind,
    CorrectionsMissing,
    DiffMissing,
    DumpEmpty,
    DumpRefused,
    OplogTopicChanged,
    StartRefused,
    TooManyDeletes,
)
from tidemark.oplog.sync.run_files import LIFE

pytestmark = pytest.mark.unit


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SyncWorld:
    return SyncWorld(tmp_path, monkeypatch)


def test_S1_R31_an_object_of_the_dump_that_is_missing_is_inserted(world):
    report = world.run(world.dump(("x", 10)))
    assert world.state() == {"x": ("insert", 10)}
    assert (report["sent"], report["outcomes"]) == (1, {"insert": 1})


def test_S3_an_object_that_the_dump_has_newer_is_updated(world):
    world.given(operation("x", "insert", 9))
    world.run(world.dump(("x", 10, ["user/u"])))
    assert world.topic.state()["x"] == operation("x", "update", 10, "user/u")


def test_S8_R32_an_object_that_the_dump_lacks_is_deleted(world):
    world.given(operation("x", "insert", 9, "user/u"), operation("y", "insert", 10))
    world.run(world.dump(("y", 10)))
    assert world.state() == {"y": ("insert", 10)}


def test_S10_a_deleted_object_that_the_dump_lacks_is_left_alone(world):
    world.given(operation("x", "delete", 9), operation("y", "insert", 10))
    report = world.run(world.dump(("y", 10)))
    assert (report["corrections"], report["outcomes"]) == (0, {"same": 1, "gone": 1})


def test_S11_an_empty_dump_is_refused(world):
    world.given(operation("x", "insert", 9))
    with pytest.raises(DumpEmpty, match="force"):
        world.validate(world.dump())


def test_S11_an_empty_dump_is_taken_where_that_is_wanted(world):
    world.given(operation("x", "insert", 9))
    world.run(world.dump(), force=True)
    assert world.state() == {}


def test_S11_an_empty_dump_has_no_newest_timestamp_to_start_at(world):
    with pytest.raises(StartRefused):
        world.validate(world.dump(), "newest", force=True)


def test_S12_R35_the_same_dump_once_more_sends_nothing(world):
    world.given(operation("x", "insert", 9), operation("y", "delete", 9), operation("z", "insert", 9))
    dump = world.dump(("x", 10), ("y", 10), ("n", 10, ["a/1"]))
    assert world.run(dump)["sent"] == 4
    world.topic.sent.clear()
    report = world.run(dump)
    assert (report["corrections"], world.topic.sent) == (0, [])


def test_S15_a_malformed_line_sends_nothing(world):
    dump = Path(world.dump(("x", 10), ("y", 10)))
    dump.write_text(dump.read_text() + "{nope\n")
    with pytest.raises(DumpRefused, match="line 3"):
        world.run(str(dump))
    assert world.topic.sent == []


def test_S16_of_several_lines_of_an_object_the_newest_counts(world):
    world.run(world.dump(("x", 9), ("x", 10), ("y", 10), ("y", 9)))
    assert world.state() == {"x": ("insert", 10), "y": ("insert", 10)}


def test_S16_that_an_object_has_several_lines_is_known(world):
    assert world.validate(world.dump(("x", 9), ("x", 10))).has_duplicates
    assert not world.validate(world.dump(("x", 9), ("y", 10))).has_duplicates


def test_S19_999_deletes_of_1000_objects_are_refused(world):
    world.given(*(operation(f"x{number}", "insert", 9) for number in range(1_000)))
    with pytest.raises(TooManyDeletes):
        world.run(world.dump(("x1", 9)))
    assert world.topic.sent == []


def test_S19_they_are_sent_by_force(world):
    world.given(*(operation(f"x{number}", "insert", 9) for number in range(1_000)))
    assert world.run(world.dump(("x1", 9)), force=True)["sent"] == 999


def test_S20_a_comparison_counts_and_sends_nothing(world):
    world.given(operation("b", "insert", 9), operation("c", "insert", 9))
    diff = world.compare(world.validate(world.dump(("a", 10), ("b", 10))))
    assert diff.outcomes == {"insert": 1, "update": 1, "delete": 1}
    assert world.topic.sent == []


def test_S21_R22_what_a_synchronisation_has_inserted_is_part_of_a_replication(world):
    world.run(world.dump(("x", 10)))
    assert world.topic.state()["x"].event == "insert"


def test_H12_an_empty_topic_is_filled_from_a_dump_without_an_agent(world):
    report = world.run(world.dump(*((f"x{number}", 10) for number in range(1_200))))
    assert (report["sent"], len(world.state())) == (1_200, 1_200)


def test_H13_newest_starts_at_the_greatest_timestamp_in_the_dump(world):
    world.given(operation("x", "insert", 9), operation("y", "insert", 10), operation("z", "insert", 11))
    world.run(world.dump(("y", 10)), "newest")
    assert world.state() == {"y": ("insert", 10), "z": ("insert", 11)}


def test_R33_what_has_changed_since_the_comparison_is_left_alone(world):
    world.given(operation("x", "insert", 9), operation("y", "insert", 9))
    diff = world.compare(world.validate(world.dump(("y", 9), ("z", 9))))
    world.topic.append(operation("x", "update", 20))
    sent = world.sync.send(diff)
    assert (sent.sent, sent.overtaken) == (1, 1)
    assert world.state()["x"] == ("update", 20)


def test_inserts_are_sent_before_deletes(world):
    world.given(operation("a", "insert", 9))
    world.run(world.dump(("b", 10), ("c", 10)))
    assert [event for event, _ in events_of(world.topic.sent)] == ["insert", "insert", "delete"]


def test_what_was_sent_is_waited_for_before_it_is_verified(world):
    diff = world.compare(world.validate(world.dump(("x", 10))))
    world.sync.send(diff)
    with pytest.raises(CollectionBehind):
        world.sync.verify(diff)


def test_a_later_operation_explains_what_an_object_is(world):
    diff = world.compare(world.validate(world.dump(("x", 10), ("y", 10))))
    world.sync.send(diff)
    world.given(operation("x", "delete", 20))
    found = world.sync.verify(diff)
    assert (found.as_sent, found.changed_since, found.missing) == (1, 1, 0)


def test_an_object_that_is_not_as_it_was_corrected_is_named(world):
    diff = world.compare(world.validate(world.dump(("x", 10), ("y", 10))))
    world.sync.send(diff)
    world.replicate()
    world.rows.pop(b"video/y")
    with pytest.raises(CorrectionsMissing) as refused:
        world.sync.verify(diff)
    assert refused.value.objects == ("video/y",)


def test_a_topic_that_was_made_again_gets_nothing(world):
    diff = world.compare(world.validate(world.dump(("x", 10))))
    world.topic_id = "another"
    with pytest.raises(OplogTopicChanged, match="made again"):
        world.sync.send(diff)
    assert world.topic.sent == []


def test_a_topic_that_got_another_partition_gets_nothing(world):
    diff = world.compare(world.validate(world.dump(("x", 10))))
    world.topic.logs.append([])
    with pytest.raises(OplogTopicChanged, match="3 partitions instead of 2"):
        world.sync.send(diff)


def test_what_was_never_compared_is_not_sent(world):
    with pytest.raises(DiffMissing):
        world.sync.files.diff("nothing", 1)


def test_who_has_sent_corrections_is_kept(world):
    diff = world.compare(world.validate(world.dump(("x", 10))))
    world.sync.send(diff, AuditEntry("sync", "ann", "drift", 1, "1 correction"))
    assert [one.who for one in world.sync.control.decisions()] == ["ann"]


def test_a_report_stays_and_everything_else_is_removed(world):
    report = world.run(world.dump(("x", 10)))
    assert world.sync.files.reports() == [report]
    assert len(world.sync.files.folder.walk("sync")) == 1


def test_files_of_a_run_that_was_given_up_are_removed_in_the_end(world):
    files = world.sync.files
    world.compare(world.validate(world.dump(("x", 10))))
    changed = files.folder.condition(files.folder.walk("sync")[0].path).changed_at // 1_000
    files.remove_old(changed + LIFE // 2)
    assert len(files.folder.walk("sync")) == 4
    files.remove_old(changed + LIFE + 60_000_000)
    assert files.folder.walk("sync") == []


def test_a_dump_that_is_refused_leaves_no_file(world):
    dump = Path(world.dump(("x", 10)))
    dump.write_text(dump.read_text() + "{nope\n")
    with pytest.raises(DumpRefused):
        world.validate(str(dump))
    assert world.sync.files.folder.walk("sync") == []


def test_a_correction_of_another_synchronisation_overtakes_too(world):
    diff = world.compare(world.validate(world.dump(("x", 10))))
    header = Correction("another", 0, world.topic_id).to_header()
    world.topic.append(operation("x", "insert", 8), [(CORRECTION_HEADER, header)])
    assert world.sync.send(diff).overtaken == 1


@pytest.mark.parametrize("start", [START, "newest"])
def test_the_run_is_the_same_for_the_same_dump_and_start(world, start):
    dump = world.dump(("x", 10))
    assert world.validate(dump, start).key == world.validate(dump, start).key
