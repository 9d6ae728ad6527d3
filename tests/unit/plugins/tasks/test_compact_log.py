"""The tasks of a log's compaction after its plan."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.airflow_context import given_context

from tidemark.errors import TidemarkError

pytestmark = pytest.mark.unit

PLAN = {"plan": "d1", "nothing_to_do": False, "held_back_by": "stream", "watermark": 7}


class ProofFailed(TidemarkError):
    needs_person = True


@pytest.fixture
def compact_log():
    from tidemark_airflow.tasks import compact_log

    return compact_log


@pytest.fixture
def decide(compact_log, monkeypatch):
    given_back: list[str] = []
    compaction = SimpleNamespace(give_back=given_back.append)
    monkeypatch.setattr(compact_log, "open_compaction", lambda pipeline, policy: compaction)

    def run(run_type: str, plan: dict[str, Any] = PLAN, **params: Any) -> list[str]:
        usual = {"dry_run": True, "approve": False, "policy": None}
        return compact_log.decide.function("orders", plan, **given_context(run_type, **{**usual, **params}))

    run.given_back = given_back
    return run


@pytest.mark.parametrize(
    ("run_type", "params", "tasks"),
    [
        ("manual", {}, []),
        ("backfill", {}, []),
        ("manual", {"dry_run": False}, ["compact"]),
        ("backfill", {"dry_run": False}, ["compact"]),
        ("scheduled", {}, ["compact"]),
        ("manual", {"dry_run": False, "approve": True}, ["approve"]),
    ],
)
def test_the_kind_of_the_run_decides(decide, run_type, params, tasks):
    assert decide(run_type, **params) == tasks
    assert decide.given_back == (["orders.dag run-1"] if tasks == ["approve"] else [])


def test_a_plan_without_gain_is_recorded_at_once(decide, capsys):
    assert decide("scheduled", {**PLAN, "nothing_to_do": True}) == ["publish"]
    assert "nothing to gain; stream holds the watermark at 7" in capsys.readouterr().out


@pytest.mark.parametrize(("chosen", "expected"), [("Approve", True), ("Reject", False)])
def test_a_rejected_plan_goes_no_further(compact_log, chosen, expected):
    assert compact_log.follow_approval.function("orders", {"chosen_options": [chosen]}) is expected


def publish(compact_log: Any, monkeypatch: Any, done: Any) -> Any:
    def carry_out(plan: str, holder: str, began: int) -> Any:
        assert (plan, holder, began) == ("d1", "orders.dag run-1", 1_794_909_600_000_000)
        if isinstance(done, Exception):
            raise done
        return done

    compaction = SimpleNamespace(publish=carry_out, recording_refusals=lambda holder: nullcontext())
    monkeypatch.setattr(compact_log, "open_compaction", lambda pipeline, policy: compaction)
    return compact_log.publish.function("orders", PLAN, **given_context("scheduled", policy=None))


def test_a_compaction_with_nothing_to_do_says_so(compact_log, monkeypatch):
    result = publish(compact_log, monkeypatch, SimpleNamespace(digest="d1"))
    assert result == {"pipeline": "orders", "plan": "d1", "nothing_to_do": True}


def test_a_proof_that_fails_is_not_retried(compact_log, monkeypatch):
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="id 7 is missing"):
        publish(compact_log, monkeypatch, ProofFailed("id 7 is missing"))


@pytest.mark.parametrize(("run_type", "asked"), [("manual", "plan"), ("scheduled", "run")])
def test_collections_with_keep_are_trimmed_and_a_dry_run_shows_the_plan(
    compact_log, monkeypatch, capsys, run_type, asked
):
    from tidemark.app.renditions import opened as renditions
    from tidemark.app.renditions import trim as trimming
    from tidemark.outputs.state.trim import Trimmed, TrimmedRendition

    calls = []

    class Trimming:
        def __init__(self, of: Any) -> None:
            self.of = of

        def plan(self) -> Any:
            calls.append("plan")
            return SimpleNamespace(lines=["a plan"], to_dict=lambda: {"since": 30})

        def run(self) -> Any:
            calls.append("run")
            return Trimmed(30, (TrimmedRendition(1, 5, 2),))

    def renditions_of(opened: Any, name: str) -> Any:
        return SimpleNamespace(store=SimpleNamespace(load=lambda: None if name == "new" else "an output"))

    writers = [
        SimpleNamespace(name=name, removes_versions=name != "seats") for name in ("accounts", "seats", "new")
    ]
    opened = SimpleNamespace(pipeline=SimpleNamespace(writers=writers))
    monkeypatch.setattr(compact_log, "open_pipeline", lambda name: opened)
    monkeypatch.setattr(renditions.WriterRenditions, "of", renditions_of)
    monkeypatch.setattr(trimming, "Trimming", Trimming)
    result = compact_log.trim.function("bank", **given_context(run_type, dry_run=True))
    said = capsys.readouterr().out
    assert calls == [asked]
    assert "bank/new: nothing was delivered yet" in said
    if asked == "plan":
        assert (result, "a plan" in said) == ({"accounts": {"since": 30}}, True)
    else:
        assert result["accounts"] == {"since": 30, "removed": [{"number": 1, "keys": 5, "times": 2}]}
        assert "older versions of 5 keys and the changes of 2 times removed; readable since 30" in said


def test_the_sweep_counts_what_it_removed(compact_log, opened, monkeypatch):
    from tidemark.log import sweep

    swept = SimpleNamespace(removed=["a", "b"], waiting=["c"], bytes=900)
    asked = []
    monkeypatch.setattr(sweep, "sweep_log", lambda *given: asked.append(given[2:]) or swept)
    monkeypatch.setattr(compact_log, "open_pipeline", lambda name: opened)
    control = SimpleNamespace(questions=SimpleNamespace(control=None))
    monkeypatch.setattr(compact_log, "open_compaction", lambda pipeline, policy: control)
    result = compact_log.sweep.function("orders", **given_context())
    assert result == {"removed": 2, "bytes": 900, "waiting": 1}
    grace = int(opened.pipeline.log.compaction.grace.total_seconds() * 1_000_000)
    assert asked == [("orders.dag run-1", grace)]
