"""The process that Spark forks its Python workers from: what it loads, and when it ends."""

import json
import subprocess
import sys

import pytest

from tidemark_workers.daemon import PRELOADED, IdleWatch

pytestmark = pytest.mark.unit

LOADED = """
import json, sys, threading
from tidemark_workers.daemon import preload
preload()
print(json.dumps([sorted(sys.modules), threading.active_count()]))
"""


@pytest.fixture(scope="module")
def loaded() -> tuple[set[str], int]:
    """The modules that are loaded before the first fork, and the number of Python's threads."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    modules, threads = json.loads(done.stdout)
    return set(modules), threads


def test_the_library_is_not_loaded_before_the_fork(loaded):
    ours = {name for name in loaded[0] if name.split(".")[0] == "tidemark"}
    assert ours == set()


def test_every_module_of_the_list_exists_and_is_loaded(loaded):
    assert [name for name in PRELOADED if name not in loaded[0]] == []


def test_loading_starts_no_thread(loaded):
    assert loaded[1] == 1


def test_it_ends_when_it_had_no_worker_for_the_whole_time():
    watch = IdleWatch(now=0.0, most=60.0)
    assert not watch.is_over(59.0, has_workers=False)
    assert watch.is_over(60.0, has_workers=False)


def test_a_worker_begins_the_time_anew():
    watch = IdleWatch(now=0.0, most=60.0)
    assert not watch.is_over(100.0, has_workers=True)
    assert not watch.is_over(159.0, has_workers=False)
    assert watch.is_over(160.0, has_workers=False)
