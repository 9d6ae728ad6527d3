"""A pipeline is forgotten whole, or visibly not yet; killed anywhere, it can be finished (item 13)."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.support.consensus import CrashingConsensus
from tests.support.fault_points import FORGET_PIPELINE
from tests.support.faults import Killed
from tests.support.log_samples import given_binding, publish_all
from tests.support.memory_letters import CountedLetters
from tests.support.memory_writers import Stream
from tests.support.pipeline_world import PipelineWorld

from tidemark.consensus.objects import Change, ObjectKey, ObjectKind
from tidemark.delivery.operator.forget_pipeline import FolderShared, PipelineForgetting, TakenMeanwhile
from tidemark.delivery.state.known_pipelines import NotKnown, is_known, known_pipelines
from tidemark.delivery.state.lease import LeaseHeld, take
from tidemark.delivery.status import read_orphan_status
from tidemark.faults import FaultPoint
from tidemark.log.files.parquet import LogFolder
from tidemark.log.files.removal import AREAS, FILES, FilesLeft, NotThisLog
from tidemark.log.state.control import LogControl
from tidemark.log.state.forgotten import BeingForgotten, LogInUse, refuse_forgotten
from tidemark.log.state.lease import LogHeld, take_log
from tidemark.log.state.readers import reading_log
from tidemark.log.state.registered_writers import Enrolled, enrol

pytestmark = pytest.mark.unit


@dataclass
class Orphan:
    """The pipeline ``orders``, which no file declares, beside ``refunds``."""

    house: PipelineWorld
    letters: CountedLetters

    @property
    def root(self) -> Path:
        return self.house.root / "log"

    def forgetting(self, **locations):
        return PipelineForgetting(self.house.consensus, "orders", self.letters, locations, self.house.clock)

    def forget(self, **options):
        self.forgetting().plan(**options).execute(self.house.deed("forget"))

    def rows(self, kind, name="orders"):
        return set(self.house.consensus.whole(ObjectKey(kind, name)).rows)

    def assert_forgotten(self, *, log: bool):
        assert not is_known(self.house.consensus, "orders")
        assert self.rows(ObjectKind.BINDINGS) == set()
        assert {row.partition("/")[0] for row in self.rows(ObjectKind.LOG)} == {"decision", "lease"}
        for name in ("stream", "archive"):
            assert {row.partition("/")[0] for row in self.rows(ObjectKind.WRITER, f"orders/{name}")} == {
                "audit"
            }
        assert self.letters.kept == {}
        assert self.root.exists() is not log
        assert known_pipelines(self.house.consensus) == ["refunds"]
        assert LogControl(self.house.consensus, "refunds").log_head().end == 0


@pytest.fixture
def orphan(tmp_path):
    house = PipelineWorld(tmp_path / "orders", consensus=CrashingConsensus())
    house.publish(orders="abc")
    house.publish(orders="de")
    stream, archive = Stream(), house.files_writer()
    house.deliver(stream)
    house.deliver(archive)
    other = LogControl(house.consensus, "refunds")
    binding = given_binding(1_000, 0, ("refunds", 0, 0, 1))
    publish_all(
        other, LogFolder("refunds", str(tmp_path / "refunds")), {binding: {("refunds", 0): {0: b"r"}}}
    )
    return Orphan(house, CountedLetters({"stream": 2}))


# Whole


@pytest.mark.parametrize("log", [True, False])
def test_a_forgotten_pipeline_leaves_what_people_did_and_tokens_and_no_other_pipeline_notices(orphan, log):
    orphan.forget(with_log=log)
    orphan.assert_forgotten(log=log)


def test_outputs_stay(orphan):
    before = orphan.house.output()
    orphan.forget(with_log=True)
    assert orphan.house.output() == before != {}


def test_a_plan_counts_what_goes_and_changes_nothing(orphan):
    before = dict(orphan.house.consensus._objects)
    plan = orphan.forgetting().plan(with_log=True)
    assert plan.details["writers"] == ["archive", "stream"]
    assert (plan.details["dead_letters"], plan.details["end"]) == (2, 4)
    stored = [path for path in orphan.root.rglob("*") if path.is_file()]
    assert plan.details["files"] == len(stored)
    assert plan.details["bytes"] == sum(path.stat().st_size for path in stored)
    assert orphan.house.consensus._objects == before


def test_a_new_pipeline_of_the_name_begins_anew_and_its_leases_are_new_ones(orphan):
    control, house = orphan.house.control, orphan.house
    hold = take_log(control, "compaction", house.clock)
    hold.release()
    old = hold.lease.token
    orphan.forget(with_log=True)

    binding = house.publish(orders="xyz")
    stream = Stream()
    house.deliver(stream)

    assert (binding.base, stream.ids, house.position(stream)) == (0, [0, 1, 2], 2)
    assert take_log(control, "another", house.clock).lease.token > old


def test_what_is_not_the_log_s_own_stays_in_its_folder_and_is_named(orphan):
    (orphan.root / "notes.txt").write_text("mine")
    plan = orphan.forgetting().plan(with_log=True)
    assert f"not the log's, stays in {orphan.root}: notes.txt" in plan.lines
    plan.execute(orphan.house.deed("forget"))
    assert [path.name for path in orphan.root.iterdir()] == ["notes.txt"]


def test_every_folder_that_a_log_has_is_removed(orphan):
    for area in AREAS:
        (orphan.root / area / "deep").mkdir(parents=True, exist_ok=True)
        (orphan.root / area / "deep" / "file").touch()
    for name in FILES:
        (orphan.root / name).write_text("{}")
    orphan.forget(with_log=True)
    orphan.assert_forgotten(log=True)


# Killed


@pytest.mark.parametrize(
    ("point", "log"),
    [
        *((point, True) for point in FORGET_PIPELINE),
        *((point, False) for point in FORGET_PIPELINE if point is not FaultPoint.PIPELINE_FILES_REMOVED),
    ],
)
def test_killed_at_any_point_it_is_visible_and_the_same_command_finishes_it(orphan, kill_at, point, log):
    kill_at(point)
    with pytest.raises(Killed):
        orphan.forget(with_log=log)
    if point is not FaultPoint.PIPELINE_FORGOTTEN:
        status = read_orphan_status("orders", orphan.house.consensus)
        assert (status.log.gate, "began to forget this pipeline" in status.log.reason) == ("stopped", True)
        with pytest.raises(BeingForgotten):
            refuse_forgotten(orphan.house.control)
        with pytest.raises(BeingForgotten):
            enrol(orphan.house.control, Enrolled("new", 0), orphan.house.clock(), "a new writer is refused")
        orphan.forget()  # whether the log goes too was decided
    orphan.assert_forgotten(log=log)


def test_killed_before_any_change_of_the_control_plane_it_is_finished_by_the_same_command(orphan):
    deaths = 0
    while True:
        orphan.house.consensus.left = deaths
        try:
            orphan.forget(with_log=True)
        except Killed:
            orphan.house.consensus.left = None
            assert is_known(orphan.house.consensus, "orders")
            begun = orphan.rows(ObjectKind.LOG) & {"forgetting"}
            assert begun or deaths == 0
            deaths += 1
            continue
        break
    orphan.house.consensus.left = None
    orphan.assert_forgotten(log=True)
    assert deaths >= 3


def test_a_log_that_was_to_stay_may_still_go(orphan, kill_at):
    kill_at(FaultPoint.PIPELINE_WRITER_FORGOTTEN)
    with pytest.raises(Killed):
        orphan.forget()
    orphan.forget(with_log=True)
    orphan.assert_forgotten(log=True)


def test_a_folder_that_another_pipeline_took_since_the_death_stays(orphan, kill_at):
    kill_at(FaultPoint.PIPELINE_MARKED)
    with pytest.raises(Killed):
        orphan.forget(with_log=True)
    forgetting = orphan.forgetting(new=[str(orphan.root)])
    forgetting.plan().execute(orphan.house.deed("forget"))
    orphan.assert_forgotten(log=False)


def test_files_that_cannot_be_removed_leave_the_mark_and_say_what_to_do(orphan, monkeypatch):
    def refuse(self, area):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr("tidemark.log.files.folder.Folder.remove_area", refuse)
        with pytest.raises(FilesLeft, match=r"could be removed \(Permission denied\)") as left:
            orphan.forget(with_log=True)
    assert left.value.needs_person
    orphan.forget()
    orphan.assert_forgotten(log=True)


# Refused


def test_a_pipeline_that_nothing_knows(orphan):
    forgetting = replace(orphan.forgetting(), pipeline="ordres")
    with pytest.raises(NotKnown, match="Did you mean `orders`"):
        forgetting.plan()


def test_a_forgotten_pipeline_is_not_known(orphan):
    orphan.forget()
    with pytest.raises(NotKnown, match="Known there: refunds"):
        orphan.forgetting().plan()


def test_a_writer_that_is_held_when_it_is_planned_or_when_it_is_done(orphan):
    plan = orphan.forgetting().plan()
    stream = orphan.house.positions.load("stream")
    take(orphan.house.positions, stream, "run-9", orphan.house.clock)
    for attempt in (lambda: plan.execute(orphan.house.deed("forget")), lambda: orphan.forgetting().plan()):
        with pytest.raises(LeaseHeld, match="run-9 has this writer"):
            attempt()
    assert "forgetting" not in orphan.rows(ObjectKind.LOG)


def test_a_writer_that_a_process_took_before_its_turn_is_left_and_the_mark_says_so(orphan, at_point):
    at_point(
        FaultPoint.PIPELINE_MARKED,
        lambda: take(
            orphan.house.positions, orphan.house.positions.load("stream"), "run-9", orphan.house.clock
        ),
    )
    with pytest.raises(TakenMeanwhile, match="run-9 took this writer while the pipeline was being forgotten"):
        orphan.forget()
    assert orphan.house.positions.load("stream") is not None
    orphan.house.clock.pass_seconds(120)
    orphan.forget()
    orphan.assert_forgotten(log=False)


def test_a_log_that_is_held(orphan):
    take_log(orphan.house.control, "compaction", orphan.house.clock)
    with pytest.raises(LogHeld, match="compaction has the log"):
        orphan.forgetting().plan()


def test_a_log_that_is_being_read_keeps_its_files(orphan):
    with reading_log(orphan.house.control, "log verify") as reading:
        reading.take_up()
        with pytest.raises(LogInUse, match="being read by log verify"):
            orphan.forgetting().plan(with_log=True)
        assert orphan.forgetting().plan().details["log"] is None


def test_a_log_whose_place_is_not_known_has_to_be_shown(orphan):
    key = ObjectKey(ObjectKind.LOG, "orders")
    snapshot = orphan.house.consensus.whole(key)
    head = json.loads(snapshot.rows["head"])
    del head["root"]  # as older versions wrote it
    orphan.house.consensus.commit(key, snapshot.version, Change({"head": json.dumps(head)}))

    with pytest.raises(NotThisLog, match="does not know where its log lies"):
        orphan.forgetting().plan(with_log=True)
    with pytest.raises(NotThisLog, match="does not have the manifest"):
        orphan.forgetting().plan(with_log=True, log_path=str(orphan.house.root.parent / "refunds"))
    orphan.forget(with_log=True, log_path=str(orphan.root))
    orphan.assert_forgotten(log=True)


def test_a_pipeline_that_never_published_has_no_log_to_remove(tmp_path):
    house = PipelineWorld(tmp_path)
    house.control.start_from(house.control.bindings_head(), {("orders", 0): 5})
    orphan = Orphan(house, CountedLetters())
    with pytest.raises(NotThisLog, match="nothing of it was ever published"):
        orphan.forgetting().plan(with_log=True)
    orphan.forget()
    assert not is_known(house.consensus, "orders")


def test_a_folder_that_another_pipeline_uses(orphan):
    for place in (orphan.root, orphan.root / "files", orphan.root.parent):
        with pytest.raises(FolderShared, match="which pipeline other uses too"):
            orphan.forgetting(other=[str(place)]).plan(with_log=True)
