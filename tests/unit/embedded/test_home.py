"""A home: written whole or not at all, and removed only when it is ours."""

import json
import re
from pathlib import Path

import pytest

from tidemark.embedded.errors import HomeNotWritable, NotAHome, StateDamaged
from tidemark.embedded.files import TEMPLATES, filled, write_atomically
from tidemark.embedded.home import MARKER, make_home, remove_home
from tidemark.embedded.state import SparkMode, State

pytestmark = pytest.mark.unit


def test_a_new_home_remembers_nothing(settings):
    assert State.read(settings) == State(ports={}, spark=SparkMode.CONNECT, versions={}, java_home=None)


def test_state_reads_back_as_it_was_written(settings):
    state = State({"kafka.controller": 17}, SparkMode.CLUSTER, {"kafka": "4.3.1"}, "/usr/lib/jvm/17")
    state.write(settings)
    assert State.read(settings) == state
    assert State.read(settings).with_ports({"x": 1}).ports == {"kafka.controller": 17, "x": 1}


def test_a_write_that_breaks_off_leaves_the_old_state(settings, monkeypatch):
    State({"a": 1}).write(settings)

    def broken(_self, _target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(KeyboardInterrupt):
        State({"a": 2}).write(settings)
    assert State.read(settings).ports == {"a": 1}
    assert [path.name for path in (settings.home / "run").iterdir()] == ["state.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"ports": {}})])
def test_a_state_that_cannot_be_read_is_named_with_the_way_out(settings, text):
    write_atomically(settings.home / "run" / "state.json", text)
    with pytest.raises(StateDamaged, match=r"state\.json cannot be read .* Remove it"):
        State.read(settings)


def test_secrets_can_be_written_for_the_owner_only(tmp_path):
    write_atomically(tmp_path / "secret", "x", mode=0o600)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("before", [None, 0o755])
def test_i26_a_home_is_for_its_owner_only_also_one_that_was_not(settings, before):
    if before is not None:
        make_home(settings)
        settings.home.chmod(before)
    make_home(settings)
    assert settings.home.stat().st_mode & 0o777 == 0o700


def test_making_a_home_twice_is_as_good_as_once(settings):
    make_home(settings)
    make_home(settings)
    assert (settings.home / MARKER).is_file()


def test_a_folder_with_only_our_own_things_in_it_becomes_a_home(settings):
    (settings.home / "log" / "orders").mkdir(parents=True)
    make_home(settings)
    assert (settings.home / MARKER).is_file()


def test_a_folder_with_other_things_in_it_does_not_become_a_home(settings):
    settings.home.mkdir()
    (settings.home / "thesis.txt").write_text("years of work")
    with pytest.raises(NotAHome, match="Nothing was changed"):
        make_home(settings)
    assert [path.name for path in settings.home.iterdir()] == ["thesis.txt"]


def test_a_home_that_cannot_be_made_is_named(settings):
    settings.home.write_text("a file")
    with pytest.raises(HomeNotWritable, match="set TIDEMARK_HOME to another folder"):
        make_home(settings)


def test_removing_refuses_a_folder_that_is_not_marked(settings):
    (settings.home / "run").mkdir(parents=True)
    (settings.home / "thesis.txt").write_text("years of work")
    with pytest.raises(NotAHome):
        remove_home(settings)
    assert (settings.home / "thesis.txt").read_text() == "years of work"


def test_removing_a_home_removes_everything_and_may_be_repeated(settings):
    make_home(settings)
    remove_home(settings)
    remove_home(settings)
    assert not settings.home.exists()


@pytest.mark.parametrize(
    ("template", "names"),
    [
        ("server.properties", ("port", "controller_port", "data")),
        ("kafka-log4j2.properties", ()),
        ("cassandra.yaml", ("port", "storage_port", "data")),
        ("cassandra-logback.xml", ()),
        ("cassandra-jvm.options", ("heap", "data", "config", "logback", "jamm", "classpath")),
        ("spark-log4j2.properties", ()),
    ],
)
def test_every_template_is_filled_by_the_names_given(template, names):
    raw = (TEMPLATES / template).read_text()
    assert all(f"@{name}@" in raw for name in names)
    assert not re.search("@[a-z_]+@", filled(template, **dict.fromkeys(names, "value")))
