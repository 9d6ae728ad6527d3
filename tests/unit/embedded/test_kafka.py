"""How Kafka's data folder gets its identity."""

import subprocess
import uuid
from pathlib import Path

import pytest

from tidemark.embedded.jars.fetch import Jars
from tidemark.embedded.java import Java
from tidemark.embedded.services import kafka

pytestmark = pytest.mark.unit

BEGINS_WITH_A_DASH = uuid.UUID(bytes=b"\xf8" * 16)


def test_a_cluster_id_that_begins_with_a_dash_is_not_taken_for_an_option(tmp_path, monkeypatch):
    commands = []

    def run(command, **_):
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(kafka.uuid, "uuid4", lambda: BEGINS_WITH_A_DASH)
    monkeypatch.setattr(kafka.subprocess, "run", run)
    kafka._format_storage(
        Java(Path("java"), 17, "17.0.15"),
        Jars(tmp_path),
        tmp_path / "server.properties",
        "-Dx=y",
        tmp_path / "log",
    )
    assert "--cluster-id=-Pj4-Pj4-Pj4-Pj4-Pj4-A" in commands[0]
