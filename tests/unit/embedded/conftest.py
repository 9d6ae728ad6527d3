"""Homes, fake Javas and small sets of jars: no Java, no network, nothing left running."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.fake_fetch import ANSWERS_17, GOOD

from tidemark.embedded.jars import fetch as jars_module
from tidemark.embedded.jars.lock_file import Jar
from tidemark.embedded.processes import PidFile, stop
from tidemark.embedded.services import oplog
from tidemark.settings import Settings


@pytest.fixture(autouse=True)
def agents(monkeypatch: pytest.MonkeyPatch) -> list[oplog.LocalAgent]:
    """The agents that pipeline files declare: those of a test, whatever the files of the checkout say."""
    declared: list[oplog.LocalAgent] = []
    monkeypatch.setattr(oplog, "local_agents", lambda settings: declared)
    return declared


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    ports = {"TIDEMARK_KAFKA_PORT": "1", "TIDEMARK_CASSANDRA_PORT": "2", "TIDEMARK_AIRFLOW_PORT": "3"}
    ports["TIDEMARK_SPARK_PORT"] = "4"
    places = {"TIDEMARK_HOME": str(tmp_path / "home"), "TIDEMARK_CACHE": str(tmp_path / "cache")}
    return Settings.read({**ports, **places})


@pytest.fixture
def java(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """Put a shell script named ``java`` on a PATH; returns the environment with it."""

    def make(script: str, name: str = "bin") -> dict[str, str]:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        path = folder / "java"
        path.write_text(f"#!/bin/sh\n{ANSWERS_17}\n{script}\n")
        path.chmod(0o755)
        places = {"JARS": str(tmp_path / "registry"), "CALLS": str(tmp_path / "calls")}
        return {"PATH": f"{folder}:/usr/bin:/bin", **places}

    return make


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three jars that a fake Java "fetches", and a lock that describes them."""
    lock = []
    for number, (place, content) in enumerate(GOOD.items(), start=1):
        conf, name = place.split("/")
        path = tmp_path / "registry" / conf / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        coordinate = f"org:{name[0]}:{number}"
        lock.append(Jar(conf, name, hashlib.sha256(content).hexdigest(), len(content), coordinate))
    monkeypatch.setattr(jars_module, "locked_jars", lambda: tuple(lock))
    return tmp_path / "registry"


@pytest.fixture
def nothing_left(settings: Settings) -> Iterator[None]:
    """End what a test started, whatever became of the test."""
    yield
    run = settings.home / "run"
    records = [record for path in run.glob("*.pid") if (record := PidFile.read(run, path.stem))]
    stop(records, run, patience=0.1)
