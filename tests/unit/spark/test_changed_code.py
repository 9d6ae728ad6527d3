"""Files that change under a running process: it knows which code it has loaded, and sends no other."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import tidemark
from tidemark.delivery.transforms.function import Function
from tidemark.module_digests import loaded_sources
from tidemark.spark import application, engine
from tidemark.spark.application import Job, read_job, summarise
from tidemark.spark.code_digests import CodeDigests
from tidemark.spark.library_archive import is_library_changed, library_digest

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The file of a library of one module, which a process has just loaded."""
    source = tmp_path / "tidemark" / "__init__.py"
    source.parent.mkdir()
    source.write_text("SHARE = 1\n")
    monkeypatch.setattr(tidemark, "__file__", str(source))
    library_digest.cache_clear()
    yield source
    library_digest.cache_clear()


def test_a_session_that_is_opened_after_a_deployment_is_refused(library: Path, tmp_path: Path) -> None:
    def follow() -> dict[str, object]:
        library.write_text("SHARE = 2\n")
        return {"archive": engine._library()}

    summary = tmp_path / "summary.json"
    assert summarise(["--summary", str(summary)], follow) == 1
    said = json.loads(summary.read_text())
    assert (said["kind"], said["needs_person"]) == ("CodeChanged", False)
    assert "changed since this process started" in said["error"]


def test_a_session_gets_the_library_that_the_process_has_loaded(library: Path) -> None:
    assert summarise([], lambda: {"archive": engine._library()}) == 0


@pytest.mark.parametrize(
    ("change", "is_changed"),
    [
        pytest.param(lambda source: None, False, id="nothing"),
        pytest.param(lambda source: source.write_text("SHARE = 2\n"), True, id="changed"),
        pytest.param(lambda source: source.with_name("late.py").touch(), True, id="added"),
    ],
)
def test_a_process_that_stays_open_can_ask_whether_its_code_was_changed(
    library: Path, change: Callable[[Path], object], is_changed: bool
) -> None:
    library_digest()
    change(library)
    assert is_library_changed() is is_changed


def test_digests_of_functions_are_taken_when_the_pipeline_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "prices_of_a_test.py"
    module.write_text("def rounded(document): return document\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    rounding = Function.model_construct(path="prices_of_a_test.rounded")
    read = SimpleNamespace(name="orders", writers=[SimpleNamespace(transforms=(rounding,))])
    monkeypatch.setattr(application, "find_pipeline", lambda name: read)
    monkeypatch.setattr(application.Connections, "load", lambda path: None)
    job = read_job(argparse.ArgumentParser(), ["--pipeline", "orders", "--connections", "c.json"])
    assert isinstance(job, Job)
    module.write_text("def rounded(document): return None\n")
    late = CodeDigests.loaded(["prices_of_a_test"])
    loaded_sources.cache_clear()
    assert CodeDigests.loaded(["prices_of_a_test"]) != late
    loaded_sources.cache_clear()
    del sys.modules["prices_of_a_test"]
