"""The id of an installation: one for all its processes, and another for every other home."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tidemark.embedded.home import make_home
from tidemark.settings import Settings
from tidemark.spark.engine import session_id
from tidemark.spark.installation_id import FILE, installation_id

pytestmark = pytest.mark.unit


def test_processes_that_begin_at_once_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(lambda _: installation_id(tmp_path / "home"), range(40)))
    assert len(found) == 1
    assert [one.name for one in (tmp_path / "home").iterdir()] == [FILE]


def test_two_homes_have_two_ids(tmp_path: Path) -> None:
    assert installation_id(tmp_path / "one") != installation_id(tmp_path / "other")


def test_installations_with_the_same_path_have_sessions_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("TIDEMARK_HOME", str(home))
    here = session_id("orders.deliver", "1")
    home.rename(tmp_path / "of another container")
    assert session_id("orders.deliver", "1") != here


def test_services_may_still_be_started_in_a_home_that_a_session_has_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    session_id("orders.deliver", "1")
    make_home(Settings.read())
