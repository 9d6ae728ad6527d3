"""``spark_apps/verify_rendition.py``: what its arguments do, with the engine's work done in this process."""

import importlib.util
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.support.renditions_installed import RenditionInstallation

from tidemark.app.renditions.hand_over import RollingBack
from tidemark.clock import SECOND
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.outputs.model.rendition import Signature
from tidemark.settings import ROOT
from tidemark.verification.renditions.here import Here

pytestmark = pytest.mark.unit

HAND_OVER = ("--hand-over", "--who", "eve", "--reason", "the sums were wrong")


@pytest.fixture
def built(bank: RenditionInstallation) -> RenditionInstallation:
    """Rendition 2 was built; a binding was delivered to rendition 1 alone since."""
    bank.declare(format="jsonl")
    bank.build()
    bank.publish({"sum": 4})
    bank.deliver_to("archive")
    return bank


@pytest.fixture
def run(built: RenditionInstallation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the application; returns its exit code and its summary."""
    path = ROOT / "spark_apps" / "verify_rendition.py"
    specification = importlib.util.spec_from_file_location("verify_rendition_application", path)
    assert specification is not None
    assert specification.loader is not None
    application = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(application)
    monkeypatch.setattr(application, "spark_session", lambda job: nullcontext())
    monkeypatch.setattr(application, "SparkEngine", lambda spark, show: Here(show))
    monkeypatch.setattr(application, "write_parts_with", lambda spark: write_parts_here)

    def run_it(*arguments: str, writer: str = "archive", number: str = "2") -> tuple[int, dict[str, Any]]:
        connections, summary = tmp_path / "connections.json", tmp_path / "summary.json"
        connections.unlink(missing_ok=True)
        built.opened.connections.write(connections)
        own = ("--writer", writer, "--number", number, *arguments)
        shared = ("--pipeline", "bank", "--connections", str(connections), "--summary", str(summary))
        code = application.main([*own, *shared])
        return code, json.loads(summary.read_text())

    return run_it


def test_a_comparison_returns_the_report(run, built):
    built.deliver_to("archive.r2")
    code, report = run()
    assert (code, report["clean"], report["mode"], report["differences"]) == (0, True, "exact", 0)
    assert report["lines"][0].startswith("bank/archive: rendition 2 compared with 1 (exact): the same")
    assert built.states == {1: "active", 2: "verified"}


def test_a_comparison_of_a_rendition_that_is_behind_is_retried_and_not_given_to_a_person(run, built):
    code, outcome = run()
    assert (code, outcome["needs_person"]) == (1, False)
    assert "1 ids behind the active one" in outcome["error"]


def test_a_handover_delivers_compares_and_hands_over(run, built):
    code, handed = run(*HAND_OVER)
    assert (code, handed["number"], handed["previous"]) == (0, 2, 1)
    newest = built.output.handovers[-1]
    assert (handed["h"], handed["at"]) == (newest.h, newest.signed.at)
    assert (newest.signed.who, newest.signed.why) == ("eve", "the sums were wrong")
    assert newest.evidence.candidate.position == 3


@pytest.mark.parametrize(("given", "soak"), [("48h", 48 * 3_600 * SECOND), ("", None)])
def test_a_handover_has_the_time_to_return_that_the_run_names(run, built, given, soak):
    run(*HAND_OVER, "--soak", given)
    assert built.output.handovers[-1].soak == soak


def test_a_second_attempt_finds_the_first_also_after_a_rollback(run, built):
    _, first = run(*HAND_OVER)
    RollingBack(built.renditions()).carry_out(Signature("bob", "it was slow", 5))
    code, second = run(*HAND_OVER)
    assert (code, second["h"], second["at"]) == (0, first["h"], first["at"])
    assert built.states == {1: "active", 2: "superseded"}


def test_a_difference_refuses_the_handover_for_good(run, built):
    built.declare(further="transforms: [{skip: {field: sum, operator: '>', match: 1}}]")
    built.build(signed=Signature("bob", "another one", 6))
    code, outcome = run(*HAND_OVER, number="3")
    assert (code, outcome["needs_person"]) == (1, True)
    assert "differs from the active one in 1 rows" in outcome["error"]
    assert built.states == {1: "active", 2: "building", 3: "building"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"writer": "archiv"}, "there is: archive"),
        ({"number": "7"}, "there is no rendition 7"),
    ],
)
def test_wrong_input_is_refused(run, built, given, said):
    for arguments in ((), HAND_OVER):
        code, outcome = run(*arguments, **given)
        assert (code, said in outcome["error"]) == (1, True)
    assert built.states == {1: "active", 2: "building"}
