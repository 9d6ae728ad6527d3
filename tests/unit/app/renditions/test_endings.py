"""The ends of renditions: what is dropped and what stays, readers that hold old times, crashes."""

import pytest
from tests.support.faults import Killed, kill_at
from tests.support.renditions_installed import ANN, FILE, RenditionInstallation

from tidemark.app.renditions.endings import Abandoning, Retiring
from tidemark.app.renditions.hand_over import RollingBack
from tidemark.app.renditions.removal import PlaceKept
from tidemark.clock import SECOND, wall_clock
from tidemark.faults import FaultPoint
from tidemark.outputs.errors import StillActive, TransitionRefused
from tidemark.outputs.model.capability import Capability
from tidemark.outputs.model.rendition import Signature
from tidemark.outputs.reader_errors import Forgotten, StillNeeded

pytestmark = pytest.mark.unit

BOB = Signature("bob", "it is not read any more", 2)


@pytest.fixture
def left(bank: RenditionInstallation) -> RenditionInstallation:
    """Readers have left rendition 1 for rendition 2."""
    bank.declare(format="jsonl")
    bank.build()
    bank.hand_over(2)
    return bank


def has(bank: RenditionInstallation, folder: str) -> bool:
    return (bank.home / folder).exists()


def reader(bank: RenditionInstallation, t: int) -> None:
    bank.renditions().readers.register(Capability("a reader", t, wall_clock() + 600 * SECOND, "a test"))


# Retired


def test_a_plan_says_what_is_dropped_and_drops_nothing(left):
    plan = Retiring(left.renditions(), 1).plan()
    assert plan.refused is None
    assert any("dropped for good: folder" in line and "2 files" in line for line in plan.lines)
    assert plan.details["since"] == left.output.handovers[-1].h
    assert (has(left, "archive"), left.states[1]) == (True, "superseded")


def test_a_retired_rendition_leaves_nothing_but_its_number(left):
    Retiring(left.renditions(), 1).carry_out(BOB)
    assert (has(left, "archive"), has(left, "archive.r2")) == (False, True)
    assert left.states == {1: "dropped", 2: "active"}
    assert left.opened.positions.load("archive").ended is not None
    assert Retiring(left.renditions(), 1).plan().changes is False


def test_24_not_while_a_reader_holds_its_times(left):
    h = left.output.handovers[-1].h
    reader(left, h)
    assert isinstance(Retiring(left.renditions(), 1).plan().refused, StillNeeded)
    with pytest.raises(StillNeeded, match="a reader"):
        Retiring(left.renditions(), 1).carry_out(BOB)
    assert (has(left, "archive"), left.states[1]) == (True, "superseded")
    left.renditions().readers.move_forward("a reader", h + 1)
    Retiring(left.renditions(), 1).carry_out(BOB)
    assert has(left, "archive") is False


@pytest.mark.parametrize("comes_first", [True, False])
def test_a_capability_and_a_retirement_at_once_never_both_win(left, comes_first):
    retiring = Retiring(left.renditions(), 1)
    assert retiring.plan().refused is None
    if comes_first:
        reader(left, 0)
        with pytest.raises(StillNeeded):
            retiring.carry_out(BOB)
        assert has(left, "archive")
    else:
        retiring.carry_out(BOB)
        with pytest.raises(Forgotten):
            reader(left, 0)


def test_the_active_rendition_is_not_retired(left):
    assert isinstance(Retiring(left.renditions(), 2).plan().refused, StillActive)
    with pytest.raises(StillActive, match="renditions handover bank archive"):
        Retiring(left.renditions(), 2).carry_out(BOB)


def test_a_rendition_that_is_built_is_abandoned_first(left):
    left.build(signed=BOB)
    assert isinstance(Retiring(left.renditions(), 3).plan().refused, TransitionRefused)


def test_a_place_around_another_ones_is_never_dropped(left):
    left.declare("{name: archive, kind: files, path: '${TIDEMARK_HOME}/elsewhere'}")
    other = FILE.replace("bank", "other").replace("[accounts]", "[others]")
    writer = "{name: inside, kind: files, path: '${TIDEMARK_HOME}/archive/inside'}"
    left.declare_text(f"{other}  - {writer}\n", "other")
    plan = Retiring(left.renditions(), 1).plan()
    assert isinstance(plan.refused, PlaceKept)
    assert any("must stay: it belongs to other/inside too" in line for line in plan.lines)
    with pytest.raises(PlaceKept, match="other/inside"):
        Retiring(left.renditions(), 1).carry_out(BOB)
    assert has(left, "archive")


def test_a_rollback_between_plan_and_execution_keeps_everything(left):
    retiring = Retiring(left.renditions(), 1)
    assert retiring.plan().refused is None
    RollingBack(left.renditions()).carry_out(BOB)
    with pytest.raises(StillActive):
        retiring.carry_out(BOB)
    assert has(left, "archive")


POINTS = [one for one in FaultPoint if one.startswith(("retire.", "consumer."))]


@pytest.mark.parametrize("point", POINTS)
def test_a_retirement_that_was_killed_is_continued(left, monkeypatch, point):
    reached = kill_at(monkeypatch, point)
    with pytest.raises(Killed):
        Retiring(left.renditions(), 1).carry_out(BOB)
    assert reached
    is_dropped = left.states[1] == "dropped" or point is FaultPoint.RETIRE_PLACE_DROPPED
    assert has(left, "archive") is not is_dropped
    Retiring(left.renditions(), 1).carry_out(ANN)
    assert (has(left, "archive"), left.states[1]) == (False, "dropped")
    assert left.output.rendition(1).retired in (BOB, ANN)


# Abandoned


def test_an_abandoned_rendition_keeps_its_place_until_it_is_retired(bank):
    bank.declare(format="jsonl")
    bank.build()
    plan = Abandoning(bank.renditions(), 2).plan()
    assert (plan.refused, plan.details["position"]) == (None, 2)
    Abandoning(bank.renditions(), 2).carry_out(BOB)
    assert (bank.states[2], has(bank, "archive.r2")) == ("abandoned", True)
    assert Abandoning(bank.renditions(), 2).plan().changes is False
    Retiring(bank.renditions(), 2).carry_out(BOB)
    assert (bank.states[2], has(bank, "archive.r2"), has(bank, "archive")) == ("dropped", False, True)


def test_a_rendition_that_readers_have_used_is_not_abandoned(left):
    for number in (1, 2):
        assert isinstance(Abandoning(left.renditions(), number).plan().refused, TransitionRefused)
        with pytest.raises(TransitionRefused):
            Abandoning(left.renditions(), number).carry_out(BOB)
