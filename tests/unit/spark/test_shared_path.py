"""Which folders are checked to be the engine's too: each one once in a session.

What the check itself finds is in tests/system/embedded/test_engine.py.
"""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.log.files.folder import Folder
from tidemark.log.files.folder_id import folder_id
from tidemark.spark import shared_path
from tidemark.spark.engine import EngineKind, OpenEngine
from tidemark.spark.errors import PathNotShared
from tidemark.spark.shared_path import check_shared_path

pytestmark = pytest.mark.unit


class Settings(dict[str, str]):
    """The settings of a session."""

    set = dict.__setitem__


class Checks:
    """A session, and the folders that were checked in it."""

    def __init__(self, log: Path) -> None:
        spark: Any = SimpleNamespace(conf=Settings())
        self.engine = OpenEngine(spark, EngineKind.CONNECT, "sc://localhost:15002", 0.0)
        self.log, self.problem, self.made = log, "", 0

    def find(self, engine: OpenEngine, folder: Folder, area: str) -> str:
        self.made += 1
        return self.problem

    def check(self) -> None:
        check_shared_path(self.engine, "orders", str(self.log))


@pytest.fixture
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checks:
    checks = Checks(tmp_path / "log")
    monkeypatch.setattr(shared_path, "_problem", checks.find)
    return checks


def test_a_folder_is_checked_once_in_a_session(checks: Checks) -> None:
    checks.check()
    checks.check()
    assert checks.made == 1


def test_another_folder_in_its_place_is_checked_again(checks: Checks) -> None:
    checks.check()
    shutil.rmtree(checks.log)
    checks.problem = "it does not see a file there"
    for _ in range(2):
        with pytest.raises(PathNotShared):
            checks.check()
    assert checks.made == 3


def test_a_folder_keeps_its_id_and_another_one_has_another(tmp_path: Path) -> None:
    first, other = (Folder("orders", str(tmp_path / name)) for name in ("first", "other"))
    assert folder_id(first) == folder_id(first)
    assert folder_id(first) != folder_id(other)


def test_nothing_is_written_for_an_application(tmp_path: Path) -> None:
    spark: Any = None
    engine = OpenEngine(spark, EngineKind.APPLICATION, "local[2]", 0.0)
    check_shared_path(engine, "orders", str(tmp_path / "log"))
    assert list(tmp_path.iterdir()) == []
