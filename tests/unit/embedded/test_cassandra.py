"""The files that Cassandra starts with."""

from pathlib import Path

import pytest

from tidemark.embedded.jars.fetch import Jars
from tidemark.embedded.java import Java
from tidemark.embedded.services import cassandra
from tidemark.embedded.state import State

pytestmark = pytest.mark.unit


@pytest.fixture
def prepared(settings, tmp_path, monkeypatch):
    """Prepares the files of a Cassandra; returns their folder."""
    monkeypatch.setattr(Jars, "named", lambda *_: tmp_path / "jamm.jar")
    monkeypatch.setattr(Jars, "classpath", lambda *_: "a.jar")
    state = State(ports={"cassandra.storage": 7000})
    java = Java(Path("java"), 17, "17.0.15")

    def prepare() -> Path:
        cassandra.cassandra_service(settings, state, java, Jars(tmp_path)).prepare()
        return settings.home / "cassandra"

    return prepare


def test_an_operators_own_options_come_after_ours(prepared):
    folder = prepared()
    (folder / "further.options").write_text("-XX:Tier3DelayOn=5\n")
    options = (prepared() / "jvm.options").read_text().splitlines()
    assert options.index("-XX:Tier3DelayOn=5") > options.index("-XX:Tier3DelayOn=0")
