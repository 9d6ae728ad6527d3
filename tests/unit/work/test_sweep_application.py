"""``sweep_work``: one journal that cannot be swept holds up no other, and is said in the end."""

import json
import runpy
from contextlib import nullcontext
from typing import Any

import pytest

from tidemark.connections import WorkConnections
from tidemark.settings import ROOT

pytestmark = pytest.mark.unit


@pytest.fixture
def application() -> dict[str, Any]:
    """The application, without Spark and without journals."""
    found = runpy.run_path(str(ROOT / "spark_apps" / "sweep_work.py"))
    inside = found["main"].__globals__
    inside["named_session"] = lambda name, connection: nullcontext()
    return inside


def test_the_others_are_swept_and_the_error_is_said(application, tmp_path):
    swept = []

    def sweep_one(spark: None, connections: WorkConnections, address: Any, dry_run: bool) -> dict[str, Any]:
        if address.journal == "bad":
            raise OSError("no host answers")
        swept.append((address.journal, dry_run))
        return {}

    application["sweep_one"] = sweep_one
    WorkConnections(cassandra={}).write(tmp_path / "connections.json")
    named = [part for name in ("c/k/good", "c/k/bad", "c/k/fine") for part in ("--journal", name)]
    given = ["--connections", str(tmp_path / "connections.json"), "--summary", str(tmp_path / "summary.json")]
    assert application["main"]([*named, *given, "--dry-run"]) == 1
    assert swept == [("good", True), ("fine", True)]
    said = json.loads((tmp_path / "summary.json").read_text())
    assert said["error"].startswith("2 of 3 work journals were swept")
    assert said["error"].endswith("c/k/bad: OSError: no host answers")


def test_a_connection_that_was_not_handed_over_is_an_error_of_its_journal(application, tmp_path):
    WorkConnections(cassandra={}).write(tmp_path / "connections.json")
    given = ["--connections", str(tmp_path / "connections.json"), "--summary", str(tmp_path / "summary.json")]
    assert application["main"](["--journal", "c/k/lonely", *given]) == 1
    assert "Connection c: was not handed over" in (tmp_path / "summary.json").read_text()
