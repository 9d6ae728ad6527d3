"""A home as one file: what is left out, what is refused, and what comes back elsewhere."""

import json
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.homes.stored_home import StillInUse, pack, relocate, unpack
from tests.homes.told import plain, told_before

pytestmark = pytest.mark.unit


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A stopped home."""
    files = {
        "run/state.json": json.dumps({"ports": {"kafka.controller": 17_000}, "spark": "local"}),
        "facts.json": json.dumps({"made": "2026-11-18"}),
        "kafka/data/shop-0/00000000000000000000.log": "records",
        "kafka/server.properties": "log.dirs=/somewhere/else",
        "cassandra/data/system/local/one.db": "rows",
        "cassandra/commitlog/CommitLog-8-1.log": "nothing",
        "logs/kafka.log": "INFO",
    }
    for name, text in files.items():
        (tmp_path / "home" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "home" / name).write_text(text)
    return tmp_path / "home"


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_what_every_start_writes_anew_is_left_out(home: Path, tmp_path: Path) -> None:
    assert pack(home, tmp_path / "old.tar.xz") == (tmp_path / "old.tar.xz").stat().st_size
    facts = unpack(tmp_path / "old.tar.xz", tmp_path / "elsewhere")
    left_out = {"kafka/server.properties", "cassandra/commitlog/CommitLog-8-1.log", "logs/kafka.log"}
    assert names(home) - names(tmp_path / "elsewhere") == left_out
    assert facts == {"made": "2026-11-18"}


def test_ports_are_forgotten_and_the_rest_of_the_state_is_not(home: Path, tmp_path: Path) -> None:
    pack(home, tmp_path / "old.tar.xz")
    unpack(tmp_path / "old.tar.xz", tmp_path / "elsewhere")
    state = json.loads((tmp_path / "elsewhere/run/state.json").read_text())
    assert state == {"ports": {}, "spark": "local"}


def test_a_home_whose_services_were_not_stopped_is_refused(home: Path, tmp_path: Path) -> None:
    (home / "run" / "kafka.pid").write_text("{}")
    with pytest.raises(StillInUse, match=r"kafka\.pid"):
        pack(home, tmp_path / "old.tar.xz")
    assert not (tmp_path / "old.tar.xz").exists()


class Session:
    """The control plane's rows, and what is done to them."""

    def __init__(self, *bodies: str | None) -> None:
        self.rows = [
            SimpleNamespace(kind="log", name="shop", row=str(n), body=b) for n, b in enumerate(bodies)
        ]
        self.changed: list[str] = []

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> Any:
        if statement.startswith("SELECT"):
            return SimpleNamespace(all=lambda: self.rows)
        self.changed.append(values[0])
        return SimpleNamespace(was_applied=True)


def test_only_paths_below_the_old_home_are_changed() -> None:
    session = Session('{"root": "/old/log/shop"}', '{"root": "/older/log"}', None)
    assert relocate(session, "/old", "/new/home") == 1
    assert session.changed == ['{"root": "/new/home/log/shop"}']


def test_what_readers_see_fits_into_a_json_file() -> None:
    row = {"tags": frozenset({"b", "a"}), "payload_bin": b"\xff\x00", "headers": {"trace": "1f"}}
    visible = {"id": {"seq_nr": 1, "expire_on": date(2026, 11, 18), "rows": {(0, 1, 5): row}}}
    told = plain(visible)
    assert json.loads(json.dumps(told)) == told
    assert told["id"]["rows"] == [
        [0, 1, 5, {"headers": {"trace": "1f"}, "payload_bin": "ff00", "tags": ["a", "b"]}]
    ]
    assert told["id"]["expire_on"] == "2026-11-18"


@pytest.mark.parametrize(
    ("now", "is_the_same"),
    [
        ({"end": 7, "writers": [{"name": "a", "new": 1}], "more": 2}, True),
        ({"end": 8, "writers": [{"name": "a"}]}, False),
        ({"end": 7, "writers": []}, False),
        ({"writers": [{"name": "a"}]}, False),
    ],
)
def test_a_later_version_may_say_more_and_never_less(now: Any, is_the_same: bool) -> None:
    before = {"end": 7, "writers": [{"name": "a"}]}
    assert (told_before(now, before) == before) is is_the_same
