"""The Spark Connect server for real: its token, its sessions, its Python workers, a server that goes away."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import psutil
import pytest
from pyspark.errors import PySparkException
from tests.support.services.marked_connections import MARKER
from tests.support.waiting import wait_until
from tests.support.worker_probe import PROBE, probe

from tidemark.connections import SparkConnection
from tidemark.embedded.errors import FirstUseFailed
from tidemark.embedded.lifecycle import all_records, down, up
from tidemark.embedded.ports import free_port
from tidemark.embedded.processes import PidFile, family
from tidemark.embedded.services.spark_connect import run_first_query, token_file
from tidemark.embedded.state import SparkMode
from tidemark.embedded.status import service_status
from tidemark.log.files.folder import Folder
from tidemark.log.files.folder_id import FOLDER_ID
from tidemark.settings import Settings
from tidemark.spark import engine as engines
from tidemark.spark.engine import open_session
from tidemark.spark.errors import EngineRefusedToken, EngineUnavailable, PathNotShared
from tidemark.spark.shared_path import check_shared_path

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A home with nothing but a Connect server, which this module may kill."""
    folder = tmp_path_factory.mktemp("engine")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("AIRFLOW", "TIDEMARK_"))]:
            if name not in ("TIDEMARK_CACHE", "TIDEMARK_TEST_SERVICES"):
                patch.delenv(name)
        patch.setenv("TIDEMARK_HOME", str(folder / "home"))
        patch.setenv("TIDEMARK_SPARK_PORT", str(free_port()))
        patch.setenv("TIDEMARK_WORKERS_IDLE", "4")
        settings = Settings.read()
        try:
            up(settings, ["spark"], SparkMode.CONNECT, spark_heap="1g")
            yield settings
        finally:
            down(settings)


@pytest.fixture(scope="module", autouse=True)
def resting(settings: Settings) -> int:
    """The process of a session's Python workers, which is at rest from the start of the module."""
    with open_session("resting", connect_to(settings)) as engine:
        (daemon,) = {row.parent for row in ask_workers(engine.spark)}
    return daemon


@pytest.fixture
def connection(settings: Settings) -> SparkConnection:
    """How to reach it. A test that killed it leaves a running one to the next."""
    up(settings, ["spark"], spark_heap="1g")
    return connect_to(settings)


def connect_to(settings: Settings) -> SparkConnection:
    token = token_file(settings).read_text().strip()
    return SparkConnection(address=f"sc://localhost:{settings.spark_port}", token=token)


def ask_workers(spark):
    return spark.range(0, 2, 1, 2).mapInArrow(probe, PROBE).collect()


def server(settings: Settings) -> psutil.Process:
    process = PidFile.read(settings.home / "run", "spark-connect").process()
    assert process is not None
    return process


def kill_9(settings: Settings) -> None:
    server(settings).kill()
    wait_until(lambda: PidFile.read(settings.home / "run", "spark-connect").process() is None)


def test_it_is_a_service_that_status_knows(settings, connection):
    (line,) = [line for line in service_status(settings) if line.service == "spark"]
    assert (line.program, line.status, line.port) == ("spark-connect", "running", settings.spark_port)


def test_without_the_token_a_client_is_refused(connection):
    for token in (None, "wrong"):
        other = SparkConnection(address=connection.address, token=token)
        with pytest.raises(EngineRefusedToken), open_session("refused", other) as engine:
            engine.spark.range(1).count()


def test_no_command_line_and_no_environment_of_its_processes_has_the_token(settings, connection):
    with open_session("looked-at", connection) as engine:
        ask_workers(engine.spark)
        members = family(all_records(settings))
        assert len(members) > 2, "the server, its daemon and workers"
        seen = "\n".join(
            " ".join([*one.cmdline(), *(f"{name}={value}" for name, value in one.environ().items())])
            for one in members
        )
    assert "spark-internal" in seen
    assert connection.token.get_secret_value() not in seen


def test_it_listens_on_the_loopback_address_only(settings, connection):
    listening = [one for one in server(settings).net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    assert {one.laddr.ip.removeprefix("::ffff:") for one in listening} == {"127.0.0.1"}


def test_workers_use_the_library_that_the_session_sent(settings, connection):
    with open_session("library", connection) as engine:
        files = {row.file for row in ask_workers(engine.spark)}
    assert len(files) == 1
    assert str(settings.home / "spark" / "tmp") in files.pop()


def test_two_sessions_with_different_libraries_do_not_disturb_each_other(connection, monkeypatch, tmp_path):
    def other_library(folder: Path) -> Path:
        path = tmp_path / "tidemark-other.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("tidemark/__init__.py", "OTHER = True\n")
        return path

    with open_session("mine", connection) as mine:
        before = {row.file for row in ask_workers(mine.spark)}
        monkeypatch.setattr(engines, "ensure_loaded_package", other_library)
        with open_session("theirs", connection) as theirs:
            (found,) = {row.file for row in ask_workers(theirs.spark)}
            assert "tidemark-other.zip" in found
        assert {row.file for row in ask_workers(mine.spark)} == before


def test_settings_views_and_cancelled_operations_of_one_session_are_not_anothers(connection):
    with open_session("one", connection) as one, open_session("two", connection) as two:
        one.spark.conf.set("tidemark.password", MARKER)
        one.spark.range(3).createOrReplaceTempView("mine")
        assert two.spark.conf.get("tidemark.password", "none") == "none"
        assert not two.spark.catalog.tableExists("mine")
        done: list[int] = []
        long = "SELECT sum(id) AS n FROM range(0, 400000000, 1, 4)"
        counting = Thread(target=lambda: done.append(two.spark.sql(long).collect()[0].n))
        counting.start()
        one.interrupt()
        one.spark.interruptAll()
        counting.join(120)
    assert len(done) == 1


def test_the_next_run_of_the_same_work_finds_its_python_workers_again(connection):
    with open_session("orders.deliver", connection) as first:
        parents = {row.parent for row in ask_workers(first.spark)}
    with open_session("orders.deliver", connection) as second:
        assert {row.parent for row in ask_workers(second.spark)} == parents


def test_an_operation_of_a_client_that_is_interrupted_is_cancelled(connection):
    # Spark leaves a job running that it starts at the very moment of the interrupt: so not before it runs.
    running = Event()

    def note_tasks(stages, inflight_tasks, operation_id, done) -> None:
        if inflight_tasks:
            running.set()

    with open_session("interrupted", connection) as engine:
        engine.spark.registerProgressHandler(note_tasks)
        interrupting = Thread(target=lambda: running.wait(60) and engine.interrupt())
        interrupting.start()
        try:
            with pytest.raises(PySparkException, match="CANCEL"):
                engine.spark.sql("SELECT sum(id % 7) FROM range(0, 40000000000, 1, 4)").collect()
        finally:
            running.set()
            interrupting.join()


def test_a_log_that_both_see_is_accepted_and_remembered(connection, tmp_path):
    with open_session("shared", connection) as engine:
        check_shared_path(engine, "orders", str(tmp_path / "log"))
        left = [path.name for path in (tmp_path / "log").rglob("*") if path.is_file()]
        assert left == [FOLDER_ID]
        check_shared_path(engine, "orders", str(tmp_path / "log"))


def test_a_log_that_the_engine_does_not_see_is_refused_with_what_to_do(connection, tmp_path, monkeypatch):
    monkeypatch.setattr(Folder, "address", lambda folder, name: str(tmp_path / "elsewhere" / name))
    with (
        pytest.raises(PathNotShared, match=r"does not see a file.*Mount the same file system"),
        open_session("unshared", connection) as engine,
    ):
        check_shared_path(engine, "orders", str(tmp_path / "log"))


def test_a_log_that_the_engine_writes_elsewhere_is_refused(connection, tmp_path, monkeypatch):
    log = tmp_path / "log"
    seen = {True: log, False: tmp_path / "elsewhere"}
    monkeypatch.setattr(Folder, "address", lambda folder, name: str(seen[name.endswith("ours.txt")] / name))
    with (
        pytest.raises(PathNotShared, match="has written a file there that this process does not see"),
        open_session("unshared", connection) as engine,
    ):
        check_shared_path(engine, "orders", str(log))


def test_a_log_that_the_engine_may_not_write_is_refused(connection, tmp_path, monkeypatch):
    log, taken = tmp_path / "log", tmp_path / "a file"
    taken.write_text("")
    seen = {True: log, False: taken}
    monkeypatch.setattr(Folder, "address", lambda folder, name: str(seen[name.endswith("ours.txt")] / name))
    with (
        pytest.raises(PathNotShared, match="cannot write there"),
        open_session("unshared", connection) as engine,
    ):
        check_shared_path(engine, "orders", str(log))


def test_python_processes_of_a_session_at_rest_end_and_are_started_again(connection, resting):
    # Spark ends idle workers after a minute; then the process that they were forked from ends by itself.
    wait_until(lambda: not psutil.pid_exists(resting), 180, "the end of the idle process")
    with open_session("resting", connection) as engine:
        assert resting not in {row.parent for row in ask_workers(engine.spark)}


def test_a_server_that_dies_under_a_client_is_one_clear_error_and_a_retry_finds_it_back(settings, connection):
    def lose() -> None:
        with open_session("lost", connection) as engine:
            assert engine.spark.range(3).count() == 3
            kill_9(settings)
            engine.spark.range(3).count()

    with pytest.raises(EngineUnavailable, match="tidemark services up"):
        lose()
    with (
        pytest.raises(EngineUnavailable, match="has not answered for 1 s"),
        open_session("lost", connection, patience=1.0),
    ):
        raise AssertionError("there is no server")
    up(settings, ["spark"], spark_heap="1g")
    with open_session("lost", connection) as engine:
        assert engine.spark.range(3).count() == 3


def test_a_server_that_was_restarted_meanwhile_is_one_clear_error(settings, connection):
    def go_on_after_a_restart() -> None:
        with open_session("restarted", connection) as engine:
            assert engine.spark.range(3).count() == 3
            kill_9(settings)
            up(settings, ["spark"], spark_heap="1g")
            engine.spark.range(3).count()

    with pytest.raises(EngineUnavailable, match="a retry does the rest"):
        go_on_after_a_restart()


def test_a_server_that_is_starting_is_waited_for_and_the_summary_says_how_long(settings, connection):
    down(settings, ["spark"])
    starting = Thread(target=lambda: up(settings, ["spark"], spark_heap="1g"))
    starting.start()
    try:
        with open_session("early", connection) as engine:
            assert engine.spark.range(3).count() == 3
            assert engine.to_dict()["waited"] > 0.5
    finally:
        starting.join()


def test_its_log_shows_no_secret_of_a_plan(settings, connection):
    with open_session("secrets", connection) as engine:
        options = {
            "kafka.bootstrap.servers": "127.0.0.1:1",
            "kafka.default.api.timeout.ms": "1000",
            "kafka.request.timeout.ms": "1000",
            "kafka.sasl.jaas.config": f'x required username="a" password="{MARKER}";',
            "subscribe": "orders",
        }
        orders = engine.spark.read.format("kafka").options(**options).load()
        with pytest.raises(PySparkException):
            orders.collect()
        assert MARKER not in engine.spark.sql("SET -v").toPandas().to_string()
    log = (settings.home / "logs" / "spark-connect.log").read_text()
    assert MARKER not in log
    assert connection.token.get_secret_value() not in log


def test_a_home_whose_token_was_changed_under_a_running_server_says_so(settings, connection):
    before = token_file(settings).read_text()
    token_file(settings).write_text("another\n")
    try:
        (line,) = [line for line in service_status(settings) if line.service == "spark"]
        assert line.status == "silent"
        assert "refuses the token" in line.detail
    finally:
        token_file(settings).write_text(before)


def test_a_server_that_cannot_write_is_found_at_its_first_use(settings, connection, tmp_path):
    (tmp_path / "spark").mkdir()
    (tmp_path / "spark" / "token").write_text(connection.token.get_secret_value())
    (tmp_path / "spark" / "tmp").write_text("a file where the folder should be")
    with pytest.raises(FirstUseFailed, match=r"its first query failed.*when the cause is mended"):
        run_first_query(replace(settings, home=tmp_path), settings.spark_port)


def test_a_second_home_has_a_token_of_its_own(settings, connection, tmp_path):
    from tidemark.embedded.services.spark_connect import ensure_token

    other = replace(settings, home=tmp_path / "other")
    assert ensure_token(other) != connection.token.get_secret_value()


def test_stopping_leaves_no_process_behind(settings, connection):
    with open_session("stopped", connection) as engine:
        ask_workers(engine.spark)
    members = [one.pid for one in family(all_records(settings))]
    assert down(settings, ["spark"]) == len(members)
    assert [
        pid for pid in members if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"
    ] == []


CLIENT = """
import sys
from tidemark.connections import SparkConnection
from tidemark.spark.engine import open_session
connection = SparkConnection(address=sys.argv[1], token=sys.stdin.read())
with open_session(sys.argv[2], connection) as engine:
    print(engine.spark.range(5).count())
"""


def test_two_processes_use_it_at_once(connection):
    def client(name: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", CLIENT, connection.address, name]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    with client("a.deliver") as one, client("b.deliver") as two:
        answers = [each.communicate(connection.token.get_secret_value(), 120)[0] for each in (one, two)]
    assert answers == ["5\n", "5\n"]
