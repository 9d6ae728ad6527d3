"""Modules that are loaded before tasks are forked: a task never runs other code than what is on disk."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tidemark.settings import ROOT

pytestmark = pytest.mark.unit

FORK = """
import os, sys, tidemark_airflow.preload as preload
from pathlib import Path
folder, change = Path(sys.argv[1]), sys.argv[2]
sys.path.insert(0, str(folder))
preload.PACKAGES = ("shop",)
own = preload.OwnModules((folder / "shop",), preload.stamp([folder / "shop"]))
import shop.prices
os.register_at_fork(after_in_child=own.forget_changed)
exec(change)
if os.fork() == 0:
    was_loaded = "shop.prices" in sys.modules
    from shop.prices import TEA
    print(was_loaded, TEA, flush=True)
    os._exit(0)
os.wait()
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A package with one module."""
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "prices.py").write_text("TEA = 3\n")
    return tmp_path


@pytest.fixture
def seen_by_a_task(shop: Path):
    """What a fork sees of the package after a change: whether it was loaded, and the price in it."""

    def run(change: str) -> str:
        command = [sys.executable, "-W", "ignore", "-c", FORK, str(shop), change]
        environ = {"PYTHONPATH": str(ROOT / "plugins"), "PATH": ""}
        done = subprocess.run(command, capture_output=True, text=True, env=environ, check=True)
        return done.stdout.strip()

    return run


def test_a_task_finds_our_modules_loaded(seen_by_a_task):
    assert seen_by_a_task("") == "True 3"


def test_a_task_reads_a_changed_module_anew(seen_by_a_task):
    assert seen_by_a_task("(folder / 'shop' / 'prices.py').write_text('TEA = 4  # now')") == "False 4"


def test_an_added_module_counts_as_a_change(seen_by_a_task):
    assert seen_by_a_task("(folder / 'shop' / 'orders.py').touch()") == "False 3"


def test_a_removed_module_counts_as_a_change(seen_by_a_task):
    change = "(folder / 'shop' / '__init__.py').unlink()"
    assert seen_by_a_task(change).startswith("False")


def test_a_folder_that_is_gone_leaves_nothing_loaded(tmp_path, monkeypatch):
    from tidemark_airflow import preload

    monkeypatch.setattr(preload, "PACKAGES", ("vanished",))
    monkeypatch.setitem(sys.modules, "vanished", object())
    preload.OwnModules((tmp_path / "vanished",), frozenset()).forget_changed()
    assert "vanished" not in sys.modules


def test_a_package_that_is_not_installed_stops_nothing():
    from tidemark_airflow.preload import load

    assert load(["json", "no_such_package_anywhere"]) == ["no_such_package_anywhere"]


def test_what_is_preloaded_exists():
    from tidemark_airflow.preload import OTHERS, OURS

    folders = {"tidemark": ROOT / "include", "tidemark_airflow": ROOT / "plugins"}
    for module in OURS:
        assert Path(folders[module.split(".")[0]], *module.split(".")).with_suffix(".py").is_file(), module
    assert [module for module in OTHERS if find_spec(module.split(".")[0]) is None] == []


def test_nothing_of_ours_is_among_the_modules_that_stay_loaded():
    from tidemark_airflow.preload import OTHERS, PACKAGES

    assert not [module for module in OTHERS if module.split(".")[0] in PACKAGES]


def test_the_executor_is_airflows_own_but_for_its_start():
    from airflow.executors.local_executor import LocalExecutor

    from tidemark_airflow.preloaded_executor import PreloadedExecutor

    assert issubclass(PreloadedExecutor, LocalExecutor)
    assert [name for name in vars(PreloadedExecutor) if not name.startswith("_")] == ["start"]


def test_the_digest_of_what_was_loaded_is_taken_with_it(monkeypatch):
    from tidemark.spark.library_archive import library_digest
    from tidemark_airflow import preload

    monkeypatch.setattr(preload, "OURS", ())
    library_digest.cache_clear()
    preload.OwnModules.load()
    assert library_digest.cache_info().currsize == 1
