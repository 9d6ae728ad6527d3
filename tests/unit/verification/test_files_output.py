"""A files writer's output against what it has made: what is missing or changed is noticed, and made again.

Item 7.
"""

import json
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import pytest
from tests.support.faults import Killed
from tests.support.pipeline_world import PipelineWorld, given_gate

from tidemark.delivery.compacted_history import HistoryCompacted
from tidemark.delivery.operator.action_plan import NotPossible
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import ShapeChanged
from tidemark.delivery.state.writer_state import Cause
from tidemark.faults import FaultPoint
from tidemark.verification.outputs.accept_missing import plan_let_go
from tidemark.verification.outputs.files import draw_files, judge_names
from tidemark.verification.outputs.found import Extent, OutputProblem, OutputVerification
from tidemark.verification.outputs.reconcile import reconcile_output, usual_extent, verify_output
from tidemark.verification.outputs.repair import NotMended, mend_output
from tidemark.verification.reconciliation import read
from tidemark.writers.files.ledger import Made, MadeFile, ids_of

pytestmark = pytest.mark.unit

ALL = Extent(everything=True)
CHEAP = Extent()


class Desk:
    """Where the files of a house are verified."""

    def __init__(self, house: PipelineWorld, **keys: object) -> None:
        self.house, self.writer = house, house.files_writer(format="jsonl", **keys)
        self.compacted_below = 0

    @property
    def log(self) -> PublishedLog:
        log = self.house.log
        below, policies = self.compacted_below, ("latest",) if self.compacted_below else ()
        return replace(log, manifest=replace(log.manifest, compacted_below=below, policies=policies))

    def deliver(self, *bindings: str) -> None:
        for letters in bindings:
            self.house.publish(orders=letters)
        self.house.deliver(self.writer)

    def file(self, number: int) -> Path:
        return sorted((self.house.root / "archive").glob("*.jsonl"))[number]

    def names(self) -> list[str]:
        return sorted(path.name for path in (self.house.root / "archive").glob("*.jsonl"))

    def verify(self, extent: Extent = CHEAP) -> OutputVerification:
        found = verify_output(self.writer, self.log, self.house.positions, extent)
        assert found is not None
        return found

    def reconcile(self, extent: Extent = CHEAP):
        root = str(self.house.root / "log")
        return reconcile_output(self.verify(extent), self.house.positions, root, "run", self.house.clock)

    def mend(self):
        house, gate = self.house, self.gate
        assert gate is not None
        return mend_output(
            self.writer, self.log, house.positions, gate, "ann", house.shown.append, house.clock
        )

    def let_go(self) -> None:
        plan = plan_let_go(self.writer, self.house.log, self.house.positions, self.house.clock)
        plan.execute(self.house.deed("let go"))

    @property
    def gate(self):
        return self.house.gate(self.writer)


@pytest.fixture
def house(tmp_path) -> PipelineWorld:
    return PipelineWorld(tmp_path)


@pytest.fixture
def desk(house) -> Desk:
    """Three files of three messages each."""
    desk = Desk(house)
    desk.deliver("abc", "def", "ghi")
    return desk


def said(found: OutputVerification) -> list[str]:
    return [one.said for one in found.differences]


# Deciding


def made(name: str, size: int, digest: str | None = "d") -> dict[str, frozenset[MadeFile]]:
    return {name: frozenset({MadeFile(name, size, digest)})}


NAMES = [f"{base:020d}-{base + 9:020d}.jsonl" for base in range(0, 100, 10)]


def test_names_and_sizes_are_compared():
    recorded = made(NAMES[0], 5) | made(NAMES[1], 6) | made(NAMES[2], 7)
    found = judge_names(recorded, {NAMES[0]: 5, NAMES[2]: 8, "a stranger": 1})
    assert [(one.problem, one.first_id) for one in found] == [
        (OutputProblem.MISSING, 10),
        (OutputProblem.SIZE, 20),
    ]


def test_any_recorded_version_of_a_file_is_right():
    versions = frozenset({MadeFile(NAMES[0], 5, "a"), MadeFile(NAMES[0], 6, "b")})
    assert judge_names({NAMES[0]: versions}, {NAMES[0]: 6}) == []


def test_half_of_the_files_that_are_read_were_delivered_just_now():
    drawn = draw_files(NAMES, 99, after=79, count=4)
    assert sum(ids_of(name)[1] > 79 for name in drawn) == 2
    assert len(set(drawn)) == 4


def test_another_position_draws_others_and_the_same_one_the_same():
    drawn = {frozenset(draw_files(NAMES, position, None, 2)) for position in range(40)}
    assert len(frozenset().union(*drawn)) == len(NAMES)
    assert draw_files(NAMES, 7, None, 2) == draw_files(NAMES, 7, None, 2)


@pytest.mark.parametrize(("count", "expected"), [(0, 0), (1, 1), (30, 10)])
def test_as_many_are_drawn_as_there_are(count, expected):
    assert len(draw_files(NAMES, 1, 50, count)) == expected


def test_only_whole_bindings_up_to_the_position_count_and_none_that_was_let_go():
    recorded = Made({**made(NAMES[0], 1), **made(NAMES[1], 1), **made(NAMES[2], 1)}, frozenset({NAMES[1]}))
    assert list(recorded.between(0, 29)) == [NAMES[0], NAMES[2]]
    assert list(recorded.between(0, 28)) == [NAMES[0]]
    assert list(recorded.between(10, 29)) == [NAMES[2]]


# Looking


def test_i07_files_that_are_as_they_were_made_are_clean(desk):
    found = desk.verify(ALL)
    assert (found.is_clean, dict(found.looked_at)) == (True, {"files": 3, "read whole": 3})
    assert found.summary == "3 files, 3 read whole; up to id 8"


def test_i07_a_removed_file_is_noticed_by_the_cheapest_look(desk):
    gone = desk.file(1)
    gone.unlink()
    found = desk.verify()
    assert said(found) == [f"{gone.name}: the file is missing"]
    assert "tidemark resume orders archive" in found.way


def test_i07_a_removed_folder_is_noticed(desk):
    rmtree(desk.house.root / "archive")
    assert [one.problem for one in desk.verify().differences] == [OutputProblem.MISSING] * 3


def test_a_shorter_file_is_noticed_by_its_size(desk):
    desk.file(0).write_bytes(desk.file(0).read_bytes()[:-1])
    assert [one.problem for one in desk.verify().differences] == [OutputProblem.SIZE]


def test_a_changed_file_is_noticed_when_it_is_read(desk):
    text = desk.file(2).read_text()
    desk.file(2).write_text(text.replace("ghi"[0], "x", 1))
    assert desk.verify().is_clean
    assert [one.problem for one in desk.verify(ALL).differences] == [OutputProblem.CONTENT]
    named = Extent(names=frozenset({desk.file(2).name}))
    assert [one.problem for one in desk.verify(named).differences] == [OutputProblem.CONTENT]


def test_what_is_beyond_the_position_is_not_asked_for(desk):
    desk.house.rewind("archive", 2)
    desk.file(2).unlink()
    assert desk.verify(ALL).is_clean


def test_where_the_folder_is_no_folder_any_more_everything_is_missing(desk):
    rmtree(desk.house.root / "archive")
    (desk.house.root / "archive").write_text("in the way")
    assert [one.problem for one in desk.verify().differences] == [OutputProblem.MISSING] * 3


def test_a_writer_that_has_delivered_nothing_is_not_looked_at(house):
    desk = Desk(house)
    house.register(desk.writer)
    assert verify_output(desk.writer, house.log, house.positions, CHEAP) is None


def test_a_writer_that_began_later_is_asked_for_no_earlier_file(house):
    desk = Desk(house)
    house.publish(orders="abc")
    house.register(desk.writer, position=2)
    desk.deliver("def")
    assert desk.verify(ALL).summary == "1 files, 1 read whole; up to id 5"


def test_nothing_is_looked_at_where_the_file_says_so(house):
    assert usual_extent(Desk(house, reconcile=0).writer) is None
    assert usual_extent(Desk(house, reconcile=0).writer, everything=True) == Extent(0, True)


@pytest.mark.parametrize("setting", ["path", "namespaces"])
def test_by_other_settings_no_file_is_called_missing_and_none_can_be_let_go(desk, setting):
    other = str(desk.house.root / "elsewhere") if setting == "path" else "^refunds$"
    desk.writer = desk.house.files_writer(format="jsonl", **{setting: other})
    for judge in (desk.reconcile, desk.let_go):
        with pytest.raises(ShapeChanged, match=f"{setting} was .* and is now .*Change it back"):
            judge()
    assert desk.gate is None


def test_a_rewind_says_which_files_are_kept(desk):
    desk.file(0).unlink()
    plan = desk.house.operator.rewind("archive", -1, desk.writer)
    assert "2 of their files are there already and are kept" in plan.lines


# What an older version has made


def of_older_version(desk: Desk) -> None:
    """Nothing was recorded, and where it began was not kept."""
    rmtree(desk.house.root / "log" / "outputs")
    state = desk.house.state(desk.writer)
    desk.house.positions._store(replace(state, since=None))


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_what_is_there_is_taken_once_and_judged_by_the_log(house, form):
    desk = Desk(house)
    desk.writer = house.files_writer(format=form)
    desk.deliver("abc", "def")
    of_older_version(desk)
    assert desk.verify(ALL).is_clean
    (house.root / "archive" / sorted(house.output())[0]).unlink()
    assert [one.problem for one in desk.verify().differences] == [OutputProblem.MISSING]


def test_another_content_than_the_log_s_is_noticed_without_a_record(desk):
    of_older_version(desk)
    text = desk.file(0).read_text()
    desk.file(0).write_text(text.replace("orders", "sredro"))
    assert [one.problem for one in desk.verify(ALL).differences] == [OutputProblem.CONTENT]


def test_what_was_missing_already_is_noticed(desk):
    of_older_version(desk)
    gone = desk.file(0)
    gone.unlink()
    assert said(desk.verify()) == said(desk.verify()) == [f"{gone.name}: the file is missing"]


def test_without_a_record_and_without_the_log_it_cannot_be_told(desk):
    of_older_version(desk)
    desk.compacted_below = 9
    found = desk.verify(ALL)
    assert (found.is_clean, sum(found.not_provable.values())) == (True, 3)


# Closing the gate, and mending


def test_i07_a_difference_closes_the_gate_and_is_kept(desk):
    gone = desk.file(1)
    gone.unlink()
    record = desk.reconcile()
    assert (record.passed, desk.gate.cause) == (False, Cause.VERIFICATION)
    assert (
        f"the files are not what the log says (3 files, 0 read whole; 1 different; up to id 8): {gone.name}"
        in (desk.gate.reason)
    )
    assert read("orders", str(desk.house.root / "log"), "archive", 8) == record


def test_i07_a_resume_makes_missing_files_again_with_the_same_bytes(desk):
    before = desk.house.output()
    desk.file(2).unlink()
    desk.file(0).unlink()
    desk.reconcile()
    resumed = desk.mend()
    assert (resumed.gate, resumed.delivered, desk.gate) == (None, 6, None)
    assert desk.house.output() == before
    assert [deed.what for deed in desk.house.positions.deeds("archive")] == ["open"]


def test_i07_so_does_a_rewind_and_the_next_run(desk):
    before = desk.house.output()
    rmtree(desk.house.root / "archive")
    desk.reconcile()
    desk.house.rewind("archive", -1)
    assert desk.mend().gate is None
    outcome = desk.house.deliver(desk.writer)
    assert (outcome.total.written, desk.house.output()) == (9, before)


def test_a_damaged_file_is_never_overwritten_and_moving_it_away_mends_it(desk):
    before, damaged = desk.house.output(), desk.file(1)
    damaged.write_text("damaged")
    desk.reconcile()
    assert f"Move {damaged.name} away" in desk.gate.reason
    with pytest.raises(NotMended, match=f"{damaged.name}: it has 7 bytes instead of"):
        desk.mend()
    assert damaged.read_text() == "damaged"
    damaged.rename(desk.house.root / "elsewhere")
    assert desk.mend().gate is None
    assert desk.house.output() == before


def test_a_file_that_was_changed_is_looked_at_again_before_the_gate_opens(desk):
    text = desk.file(1).read_text()
    desk.file(1).write_text(text.replace("d", "x", 1))
    desk.reconcile(ALL)
    with pytest.raises(NotMended, match="its bytes were changed"):
        desk.mend()
    desk.file(1).write_text(text)
    assert desk.mend().gate is None


def test_a_later_narrower_look_does_not_hide_what_closed_the_gate(desk):
    text = desk.file(1).read_text()
    desk.file(1).write_text(text.replace("d", "x", 1))
    desk.reconcile(ALL)
    assert desk.reconcile().passed  # names and sizes only; its record takes the other one's place
    with pytest.raises(NotMended, match="its bytes were changed"):
        desk.mend()


def test_without_a_record_of_what_was_different_everything_is_looked_at(desk):
    text = desk.file(1).read_text()
    desk.file(1).write_text(text.replace("d", "x", 1))
    given_gate(desk.house, desk.writer, Cause.VERIFICATION, 8)
    with pytest.raises(NotMended):
        desk.mend()


def test_a_target_that_fails_leaves_the_gate_closed(desk):
    rmtree(desk.house.root / "archive")
    desk.reconcile()
    (desk.house.root / "archive").write_text("in the way")
    with pytest.raises(NotMended, match="nothing can be written into"):
        desk.mend()
    assert desk.gate is not None


def test_what_the_log_has_not_whole_any_more_is_not_made_in_part(desk):
    desk.file(0).unlink()
    desk.reconcile()
    desk.compacted_below = 9
    with pytest.raises(HistoryCompacted, match="tidemark verify orders archive --let-go"):
        desk.mend()
    assert (len(desk.names()), desk.gate.cause) == (2, Cause.VERIFICATION)


def test_dying_between_mending_and_opening_is_mended_by_the_next(desk, kill_at):
    desk.file(0).unlink()
    desk.reconcile()
    kill_at(FaultPoint.OUTPUT_MENDED)
    with pytest.raises(Killed):
        desk.mend()
    assert desk.mend().gate is None


# Letting go


def test_what_a_person_lets_go_is_not_asked_for_any_more(desk):
    gone = desk.file(1)
    gone.unlink()
    desk.reconcile()
    desk.let_go()
    assert desk.gate is None
    found = desk.verify(ALL)
    assert (found.is_clean, found.looked_at["let go by a person"]) == (True, 1)
    (kept,) = (desk.house.root / "log" / "outputs").rglob("*.lost")
    assert json.loads(kept.read_text())["who"] == "ann"


def test_dying_while_letting_go_leaves_the_gate_closed_and_the_next_look_opens_it(desk, kill_at):
    desk.file(1).unlink()
    desk.reconcile()
    kill_at(FaultPoint.OUTPUT_GIVEN_UP)
    with pytest.raises(Killed):
        desk.let_go()
    assert desk.gate is not None
    desk.house.clock.pass_seconds(120)
    assert desk.mend().gate is None


def test_the_gate_stays_closed_where_something_else_is_different(desk):
    desk.file(1).unlink()
    desk.file(0).write_text("damaged")
    desk.reconcile()
    desk.let_go()
    assert desk.gate is not None


def test_nothing_is_let_go_that_is_there(desk):
    with pytest.raises(NotPossible, match="no file of it is missing"):
        desk.let_go()
