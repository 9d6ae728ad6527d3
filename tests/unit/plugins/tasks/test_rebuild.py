"""The tasks of a rebuild: each goes on with what an earlier attempt has done."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.airflow_context import given_context
from tests.support.renditions_installed import ANN, FILE, RenditionInstallation

from tidemark.app.renditions.hand_over import HandingOver, RollingBack
from tidemark.clock import SECOND, wall_clock
from tidemark.outputs.model.capability import Capability
from tidemark.outputs.model.rendition import Signature
from tidemark.outputs.reader_errors import StillNeeded

pytestmark = pytest.mark.unit

PARAMS = {
    "writer": "archive",
    "reason": "the sums were wrong",
    "dry_run": True,
    "mode": None,
    "approve": "person",
    "soak": None,
    "drop": False,
}
BOB = Signature("bob", "it was slow", 5)


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RenditionInstallation:
    """One binding is delivered to ``archive``; its file asks for another format since."""
    world = RenditionInstallation(tmp_path, monkeypatch)
    world.publish({"sum": 1}, {"sum": 2})
    world.deliver()
    world.declare(format="jsonl")
    return world


@pytest.fixture
def rebuild(bank, monkeypatch) -> Any:
    from tidemark_airflow.tasks import rebuild

    monkeypatch.setattr(rebuild, "open_pipeline", lambda name: bank.opened)
    return rebuild


def context(run_type: str = "manual", results: Any = None, **params: Any) -> Any:
    return given_context(run_type, results, **{**PARAMS, **params})


def refused(rebuild: Any, given: Any) -> str:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException) as failed:
        rebuild.register.function("bank", **given)
    return str(failed.value)


# register


def test_a_dry_run_shows_the_plan_and_declares_nothing(rebuild, bank, capsys):
    assert rebuild.register.function("bank", **context()) == []
    shown = capsys.readouterr().out
    assert "bank/archive: build rendition 2" in shown
    assert "settings: format was 'parquet' and is now 'jsonl'" in shown
    assert "this was a dry run; nothing was declared or built" in shown
    assert bank.states == {1: "active"}


def test_a_run_declares_the_rendition_and_tells_the_next_tasks_which(rebuild, bank):
    given = context(dry_run=False)
    assert rebuild.register.function("bank", **given) == ["build"]
    assert given["ti"].pushed == {"number": 2, "consumer": "archive.r2", "messages": 2}
    signed = bank.output.rendition(2).signed
    assert (signed.who, signed.why) == ("ann (orders.dag)", "the sums were wrong")


def test_a_retry_finds_the_rendition_whatever_became_of_it(rebuild, bank):
    for _ in range(2):
        rebuild.register.function("bank", **context(dry_run=False))
    assert bank.states == {1: "active", 2: "building"}
    bank.build()
    bank.hand_over(2)
    given = context(dry_run=False)
    rebuild.register.function("bank", **given)
    assert (given["ti"].pushed["number"], bank.states) == (2, {1: "superseded", 2: "active"})


def test_a_run_that_replicate_has_started_is_never_dry_and_never_returns_to_old_settings(rebuild, bank):
    assert rebuild.register.function("bank", **context("operator_triggered")) == ["build"]
    bank.build()
    bank.hand_over(2)
    bank.declare(format="parquet")
    given = context("operator_triggered", reason="on_change: rebuild")
    given["dag_run"].start_date = given["dag_run"].data_interval_end
    assert "are those of rendition 1, so no rebuild starts by itself" in refused(rebuild, given)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        pytest.param({"writer": "archiv"}, "there is: archive", id="an unknown writer"),
        pytest.param({"dry_run": False, "reason": " "}, "needs an author and a reason", id="no reason"),
        pytest.param({"dry_run": False, "reason": None}, "needs an author and a reason", id="none at all"),
    ],
)
def test_wrong_input_is_not_retried(rebuild, bank, params, said):
    assert said in refused(rebuild, context(**params))
    assert bank.states == {1: "active"}


# decide, follow_approval


@pytest.mark.parametrize(("approve", "tasks"), [("person", ["approve"]), ("automatic", ["hand_over"])])
def test_a_person_is_asked_where_that_is_asked_for(rebuild, approve, tasks):
    assert rebuild.decide.function(**context(approve=approve)) == tasks


def test_a_rejection_abandons_nothing_and_says_so(rebuild, bank, capsys):
    bank.build()
    answer = {"chosen_options": ["Reject"], "responded_by_user": {"name": "eve"}}
    given = context(results={"register": 2})
    assert rebuild.follow_approval.function("bank", answer, **given) is False
    shown = capsys.readouterr().out
    assert "rejected. Nothing was changed" in shown
    assert "tidemark renditions abandon bank archive 2" in shown
    assert bank.states == {1: "active", 2: "building"}
    assert rebuild.follow_approval.function("bank", {"chosen_options": ["Approve"]}, **given) is True


# hand_over


def test_a_handover_is_signed_by_the_one_who_approved_it(rebuild):
    answer = {"chosen_options": ["Approve"], "responded_by_user": {"name": "eve"}}
    assert rebuild.signature_of(context(), answer).who == "eve (orders.dag)"
    assert rebuild.signature_of(context()).who == "ann (orders.dag)"


# retire


@pytest.fixture
def handed(bank) -> dict[str, int]:
    """Readers have taken rendition 2."""
    bank.build()
    return {"h": bank.hand_over(2), "number": 2, "previous": 1, "at": 1}


def test_the_earlier_rendition_is_retired(rebuild, bank, handed):
    for _ in range(2):
        found = rebuild.retire.function("bank", handed, **context())
        assert found == {"number": 1, "state": "dropped", "retired": {"1": "dropped"}}
    assert not (bank.home / "archive").exists()


def overtaken(bank: RenditionInstallation, soak: timedelta | None) -> dict[str, int]:
    """Readers have left rendition 2 for rendition 3 while the run that made 2 waited; what ``hand_over`` of
    the later run returned."""
    bank.build(signed=BOB)
    HandingOver(bank.renditions(), 3, soak=soak).carry_out(BOB)
    return {"h": 1, "number": 3, "previous": 2, "at": 1}


def test_a_run_that_was_overtaken_retires_its_own_rendition_all_the_same(rebuild, bank, handed):
    overtaken(bank, None)
    rebuild.retire.function("bank", handed, **context())
    assert bank.states == {1: "dropped", 2: "superseded", 3: "active"}


def test_a_later_run_retires_what_an_earlier_one_has_left_behind_and_is_not_needed_any_more(rebuild, bank):
    bank.build()
    HandingOver(bank.renditions(), 2, soak=timedelta(0)).carry_out(ANN)
    later = overtaken(bank, timedelta(0))
    found = rebuild.retire.function("bank", later, **context())
    assert found["retired"] == {"1": "dropped", "2": "dropped"}
    assert bank.states == {1: "dropped", 2: "dropped", 3: "active"}


def test_it_leaves_the_one_that_readers_may_still_return_to(rebuild, bank, handed):
    later = overtaken(bank, timedelta(0))
    rebuild.retire.function("bank", later, **context())
    assert bank.states == {1: "superseded", 2: "dropped", 3: "active"}


def test_one_that_cannot_be_retired_does_not_keep_the_others(rebuild, bank, monkeypatch):
    from airflow.sdk.exceptions import AirflowFailException

    bank.build()
    HandingOver(bank.renditions(), 2, soak=timedelta(0)).carry_out(ANN)
    later = overtaken(bank, timedelta(0))
    bank.declare("{name: archive, kind: files, path: '${TIDEMARK_HOME}/elsewhere'}")
    other = FILE.replace("bank", "other").replace("[accounts]", "[others]")
    writer = "{name: inside, kind: files, path: '${TIDEMARK_HOME}/archive/inside'}"
    bank.declare_text(f"{other}  - {writer}\n", "other")
    with pytest.raises(AirflowFailException, match="it belongs to other/inside too"):
        rebuild.retire.function("bank", later, **context())
    assert bank.states == {1: "superseded", 2: "dropped", 3: "active"}


def test_the_plan_names_everything_that_is_retired_at_the_end(rebuild, bank, handed, capsys):
    rebuild.register.function("bank", **context())
    shown = capsys.readouterr().out
    assert "rendition 2 is retired; so are others that readers have left by then: 1" in shown


def test_nothing_is_retired_where_readers_have_returned(rebuild, bank, handed):
    from airflow.sdk.exceptions import AirflowSkipException

    RollingBack(bank.renditions()).carry_out(BOB)
    with pytest.raises(AirflowSkipException, match="readers have returned to rendition 1"):
        rebuild.retire.function("bank", handed, **context())
    assert bank.states == {1: "active", 2: "superseded"}


def test_a_reader_of_old_times_is_waited_for_by_retries(rebuild, bank, handed):
    bank.renditions().readers.register(Capability("a", 0, wall_clock() + 600 * SECOND, "a test"))
    with pytest.raises(StillNeeded):
        rebuild.retire.function("bank", handed, **context())
    assert (bank.home / "archive").exists()


def test_nothing_is_forgotten_for_a_place_that_has_to_stay(rebuild, bank, handed):
    from airflow.sdk.exceptions import AirflowFailException

    bank.declare("{name: archive, kind: files, path: '${TIDEMARK_HOME}/elsewhere'}")
    other = FILE.replace("bank", "other").replace("[accounts]", "[others]")
    writer = "{name: inside, kind: files, path: '${TIDEMARK_HOME}/archive/inside'}"
    bank.declare_text(f"{other}  - {writer}\n", "other")
    with pytest.raises(AirflowFailException, match="it belongs to other/inside too"):
        rebuild.retire.function("bank", handed, **context())
    assert bank.states == {1: "superseded", 2: "active"}


# on_change: rebuild


def test_a_changed_writer_is_rebuilt_once_for_each_change(rebuild, bank):
    bank.declare(format="jsonl", further="on_change: rebuild")
    (one,) = rebuild.find_changed.function("bank")
    assert one["trigger_run_id"].startswith("auto__archive__")
    assert one["conf"]["writer"] == "archive"
    assert one["conf"]["reason"].startswith("on_change: rebuild; format was 'parquet'")
    assert rebuild.find_changed.function("bank") == [one]
    bank.build()
    assert rebuild.find_changed.function("bank") == []
