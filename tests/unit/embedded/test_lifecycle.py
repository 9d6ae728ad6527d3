"""Up and down, with shell scripts for services: what runs is left alone, what fails is told."""

import json
import os
import socket
import threading
from dataclasses import replace

import psutil
import pytest

from tidemark.embedded import lifecycle
from tidemark.embedded.errors import (
    EmbeddedError,
    FirstUseFailed,
    OnAnotherPort,
    PortTaken,
    ServiceDied,
    ServiceSilent,
    StateDamaged,
)
from tidemark.embedded.java import Java
from tidemark.embedded.lifecycle import all_records, down, service_of, up
from tidemark.embedded.ports import free_port
from tidemark.embedded.processes import PidFile, family
from tidemark.embedded.services.oplog import LocalAgent
from tidemark.embedded.services.service import Program, Service
from tidemark.embedded.state import SparkMode, State
from tidemark.embedded.status import is_healthy, service_status

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("nothing_left")]

LIVES = "exec sleep 60"


class Toys:
    """Services made of shell scripts; a test changes what they do."""

    def __init__(self, root) -> None:
        self.root = root
        self.ports = {
            "kafka": free_port(),
            "cassandra": free_port(),
            "airflow": free_port(),
            "spark": free_port(),
            "cluster": free_port(),
            "oplog": free_port(),
        }
        programs = ("kafka", "cassandra", "airflow-scheduler", "spark-connect", "spark-master", "oplog-shop")
        self.scripts = dict.fromkeys(programs, LIVES)
        self.answers: dict[str, str | None] = {}
        self.prepared: list[str] = []
        self.used: list[str] = []
        self.useless: set[str] = set()

    def service(self, name, settings, state, java, heaps, fetching) -> Service:
        programs = tuple(
            Program(
                *(program, program.title(), ("/bin/sh", "-c", script), {"PATH": os.defpath}, self.root),
                *(self.ports[name], f"TIDEMARK_{name.upper()}_PORT"),
            )
            for program, script in self.scripts.items()
            if service_of(program) == name
        )
        return Service(
            *(name, name.title(), programs, lambda: self.prepared.append(name)),
            *(lambda since: self.answers.get(name), 0.3, f"somewhere:{self.ports[name]}"),
            first_use=lambda: self.use(name),
        )

    def use(self, name: str) -> None:
        self.used.append(name)
        if name in self.useless:
            raise FirstUseFailed(name, "query", "no space left", self.root / "log")


@pytest.fixture
def toys(settings, monkeypatch, tmp_path) -> Toys:
    toys = Toys(tmp_path)
    monkeypatch.setattr(lifecycle, "_service", toys.service)
    monkeypatch.setattr(lifecycle, "find_java", lambda environ: Java(tmp_path / "java", 17, "17.0.1"))
    return toys


def pids(settings) -> dict[str, int]:
    return {record.name: record.pid for record in all_records(settings) if record.process()}


def kill(settings, program: str) -> None:
    process = PidFile.read(settings.home / "run", program).process()
    process.kill()
    process.wait(5)


def test_a_started_service_is_used_once_and_a_running_one_is_not(settings, toys):
    up(settings, ["kafka", "spark"])
    kill(settings, "kafka")
    up(settings, ["kafka", "spark"])
    assert sorted(toys.used) == ["kafka", "kafka", "spark"]


def test_a_service_that_answers_but_cannot_be_used_is_an_error(settings, toys):
    toys.useless.add("spark")
    with pytest.raises(FirstUseFailed, match=r"spark runs, but its first query failed: no space left"):
        up(settings, ["spark"])


def test_up_starts_everything_but_a_cluster_and_says_where_it_is(settings, toys):
    running = up(settings)
    assert set(pids(settings)) == {"kafka", "cassandra", "airflow-scheduler", "spark-connect"}
    assert running.addresses["kafka"] == f"somewhere:{toys.ports['kafka']}"
    assert running.state == State.read(settings)


def test_agents_are_started_after_what_they_need_and_stopped_before_it(settings, toys, agents):
    agents.append(LocalAgent("shop", toys.ports["oplog"]))
    reports = []
    up(settings, report=lambda name, phase: reports.append((name, phase)))
    assert reports.index(("oplog", "setting up")) > max(
        number for number, (name, phase) in enumerate(reports) if name != "oplog"
    )
    reports.clear()
    down(settings, report=lambda name, phase: reports.append((name, phase)))
    assert reports[:2] == [("oplog", "stopping"), ("oplog", "stopped")]


def test_an_agent_is_not_started_without_what_it_needs(settings, toys, agents):
    agents.append(LocalAgent("shop", toys.ports["oplog"]))
    toys.scripts["kafka"], toys.answers["kafka"] = "exit 1", "no"
    with pytest.raises(ServiceDied):
        up(settings)
    assert "oplog-shop" not in pids(settings)


def test_up_again_does_nothing(settings, toys):
    up(settings)
    before = pids(settings)
    reports = []
    up(settings, report=lambda name, phase: reports.append((name, phase)))
    assert pids(settings) == before
    assert sorted(toys.prepared) == ["airflow", "cassandra", "kafka", "spark"]
    assert ("kafka", f"running at somewhere:{toys.ports['kafka']}, as before") in reports


def test_up_brings_back_only_what_has_died(settings, toys):
    up(settings)
    before = pids(settings)
    kill(settings, "cassandra")
    up(settings)
    after = pids(settings)
    assert after["cassandra"] != before["cassandra"]
    assert after["kafka"] == before["kafka"]


def test_up_ends_what_a_killed_process_left_before_starting_it_anew(settings, toys):
    toys.scripts["kafka"] = "setsid sleep 61 & wait"
    up(settings, ["kafka"])
    record = PidFile.read(settings.home / "run", "kafka")
    while not any("61" in process.cmdline() for process in family([record])):
        threading.Event().wait(0.01)
    kill(settings, "kafka")
    orphans = family([record])
    assert orphans
    up(settings, ["kafka"])
    assert [process for process in orphans if process.is_running() and process.status() != "zombie"] == []


def test_ports_once_found_are_kept_while_the_service_could_still_have_them(settings, toys):
    first = up(settings).state
    assert set(first.ports) == {
        *("kafka.controller", "cassandra.storage", "airflow.worker_log", "airflow.trigger_log"),
    }
    down(settings)
    assert up(settings).state.ports == first.ports
    down(settings)
    with socket.socket() as other:
        other.bind(("127.0.0.1", first.ports["kafka.controller"]))
        other.listen()
        assert up(settings).state.ports["kafka.controller"] != first.ports["kafka.controller"]


def test_down_stops_everything_keeps_the_data_and_may_be_repeated(settings, toys):
    up(settings)
    (settings.home / "data").write_text("kept")
    running = list(pids(settings).values())
    assert down(settings) == 4
    assert [
        pid for pid in running if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"
    ] == []
    assert (settings.home / "data").read_text() == "kept"
    assert down(settings) == 0


def test_down_in_a_place_without_a_home_does_nothing_and_makes_nothing(settings):
    assert down(settings) == 0
    assert not settings.home.exists()


def test_down_can_be_told_to_stop_one_service(settings, toys):
    up(settings)
    assert down(settings, ["kafka"]) == 1
    assert set(pids(settings)) == {"cassandra", "airflow-scheduler", "spark-connect"}


def test_two_homes_do_not_see_each_other(settings, toys, tmp_path):
    other = replace(settings, home=tmp_path / "other")
    up(settings, ["kafka"])
    mine = toys.ports["kafka"]
    toys.ports["kafka"] = free_port({mine})
    up(other, ["kafka"])
    down(settings)
    assert set(pids(other)) == {"kafka"}
    down(other)


def test_a_process_that_dies_while_starting_is_told_with_its_last_words(settings, toys):
    toys.scripts["kafka"] = "echo first; echo the disk is made of cheese; exit 3"
    toys.answers["kafka"] = "connection refused"
    with pytest.raises(ServiceDied, match=r"(?s)Kafka ended while starting.*made of cheese") as died:
        up(settings)
    assert died.value.last_lines == ["first", "the disk is made of cheese"]
    assert died.value.log == settings.home / "logs" / "kafka.log"
    assert set(pids(settings)) == {"cassandra", "airflow-scheduler", "spark-connect"}, "the others came up"


def test_a_process_that_runs_but_never_answers_is_told_with_what_it_said(settings, toys):
    toys.answers["cassandra"] = "NoHostAvailable: nobody home"
    with pytest.raises(ServiceSilent, match="nobody home"):
        up(settings, ["cassandra"])
    assert set(pids(settings)) == {"cassandra"}


def test_two_failures_are_both_told(settings, toys):
    toys.scripts["kafka"] = toys.scripts["cassandra"] = "exit 1"
    toys.answers = {"kafka": "no", "cassandra": "no"}
    with pytest.raises(EmbeddedError, match=r"(?s)Kafka ended.*Cassandra ended"):
        up(settings)


def test_a_taken_port_keeps_everything_from_being_started(settings, toys):
    with socket.socket() as other:
        other.bind(("127.0.0.1", toys.ports["airflow"]))
        other.listen()
        with pytest.raises(PortTaken, match="TIDEMARK_AIRFLOW_PORT"):
            up(settings)
    assert pids(settings) == {}


def test_another_port_for_something_that_runs_is_refused(settings, toys):
    up(settings, ["kafka"])
    running = toys.ports["kafka"]
    toys.ports["kafka"] = free_port({running})
    with pytest.raises(OnAnotherPort, match=f"runs on port {running}"):
        up(settings, ["kafka"])


def test_a_change_of_sparks_mode_restarts_airflow_and_is_remembered(settings, toys):
    up(settings)
    connect = pids(settings)
    up(settings, spark_mode=SparkMode.CLUSTER)
    cluster = pids(settings)
    assert cluster["airflow-scheduler"] != connect["airflow-scheduler"]
    assert cluster["kafka"] == connect["kafka"]
    assert "spark-master" in cluster
    assert "spark-connect" not in cluster
    assert State.read(settings).spark is SparkMode.CLUSTER
    up(settings)
    assert pids(settings) == cluster


def test_in_local_mode_spark_is_no_service(settings, toys):
    up(settings)
    up(settings, spark_mode=SparkMode.LOCAL)
    assert set(pids(settings)) == {"kafka", "cassandra", "airflow-scheduler"}
    up(settings, spark_mode=SparkMode.CONNECT)
    assert "spark-connect" in pids(settings)


def test_services_beside_those_of_the_mode_are_left_alone(settings, toys):
    up(settings, ["cluster", "spark"])
    up(settings, ["airflow"], SparkMode.LOCAL)
    up(settings)
    started = {"spark-master", "spark-connect", "airflow-scheduler", "kafka", "cassandra"}
    assert set(pids(settings)) == started


@pytest.mark.parametrize(("stored", "mode"), [("local", SparkMode.CONNECT), ("cluster", SparkMode.CLUSTER)])
def test_a_home_of_version_0_1_0_gets_the_new_default_unless_it_has_a_cluster(settings, stored, mode):
    path = settings.home / "run" / "state.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"ports": {}, "spark": stored, "versions": {}}))
    assert State.read(settings).spark is mode


def test_a_mode_that_was_chosen_stays(settings):
    State(spark=SparkMode.LOCAL).write(settings)
    assert State.read(settings).spark is SparkMode.LOCAL


def test_a_mode_that_does_not_exist_is_a_damaged_state(settings):
    path = settings.home / "run" / "state.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"ports": {}, "spark_mode": "quantum", "versions": {}}))
    with pytest.raises(StateDamaged, match="quantum"):
        State.read(settings)


def test_status_tells_running_stopped_died_and_silent_apart(settings, toys, monkeypatch):
    def lines():
        return {line.program: line.status for line in service_status(settings)}

    for ask in ("kafka.ask_kafka", "cassandra.ask_cassandra"):
        monkeypatch.setattr(f"tidemark.embedded.status.{ask}", lambda port: toys.answers.get(port))
    assert lines() == dict.fromkeys(("kafka", "cassandra", "airflow", "spark"), "stopped")
    assert not is_healthy(service_status(settings))
    up(settings, ["kafka", "cassandra"])
    stopped = dict.fromkeys(("airflow", "spark"), "stopped")
    assert lines() == {"kafka": "running", "cassandra": "running", **stopped}
    assert is_healthy(service_status(settings))
    toys.answers[toys.ports["cassandra"]] = "time-out"
    assert lines()["cassandra"] == "silent"
    kill(settings, "kafka")
    assert lines()["kafka"] == "died"
    assert not is_healthy(service_status(settings))


def test_status_shows_pid_port_age_and_memory(settings, toys, monkeypatch):
    monkeypatch.setattr("tidemark.embedded.status.kafka.ask_kafka", lambda port: None)
    up(settings, ["kafka"])
    line = next(line for line in service_status(settings) if line.program == "kafka")
    assert (line.pid, line.port) == (pids(settings)["kafka"], toys.ports["kafka"])
    assert line.memory > 0
    assert line.since == pytest.approx(psutil.Process(line.pid).create_time())
