"""Real services for the system ring: a home and ports of their own, so that a running demo is not touched.

Everything is started once, however many processes test. Pipelines of the tests are declared up front, because
Airflow reads them when it starts; every test uses names of its own.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from tests.support.services.marked_connections import further_connections, secure_kafka
from tests.support.services.sharing import Turns, is_last, locked
from tests.support.waiting import wait_until

from tidemark.cassandra.session import connect, disconnect_all
from tidemark.cli.demo.main import send_actions
from tidemark.connections import CassandraConnection, KafkaConnection, SparkConnection
from tidemark.embedded.home import make_home
from tidemark.embedded.jars.class_archive import ensure_class_archive
from tidemark.embedded.lifecycle import down, up
from tidemark.embedded.ports import LOOPBACK, free_port
from tidemark.embedded.services.airflow_api import AirflowApi
from tidemark.embedded.services.spark_connect import token_file
from tidemark.embedded.state import SparkMode, State
from tidemark.journal.action import Action
from tidemark.settings import Settings

PIPELINE = """
name: {name}
source:
  kafka: {{topics: ["{name}"], connection: {kafka}}}
schedule: null
spark: {{connection: {spark}}}
writers:
  - {{name: cassandra, kind: journal, keyspace: {name}, connection: {cassandra}}}
  - {{name: archive, kind: files, path: "${{TIDEMARK_HOME}}/archive/{name}", format: jsonl}}
"""
WRITERS = """
name: {name}
source:
  kafka: {{topics: ["{name}"], format: raw}}
schedule: null
on_failure: {on_failure}
writers:
  - name: picky
    kind: files
    path: "${{TIDEMARK_HOME}}/picky/{name}"
    transforms: [{{omit: {{fields: [secret]}}}}]
  - {{name: plain, kind: files, path: "${{TIDEMARK_HOME}}/plain/{name}"}}
"""
"""Two writers, of which one takes only JSON objects."""
FIRST = (
    "embedded/test_services",
    "house/test_dags",
    "test_resume",
    "house/test_gates",
    "house/test_purge_expired",
    "house/test_work",
    "house/test_work_dead",
    "test_replicate",
)
"""Modules that begin first. On two processes: while one kills services, the other tests what needs none; then
both begin with what takes longest."""
CONDENSED = """
name: condensed
source:
  kafka: {topics: ["condensed"]}
schedule: null
log: {segment_bytes: 1, compaction: {min_lag: 1s, schedule: null}}
writers:
  - {name: archive, kind: files, path: "${TIDEMARK_HOME}/archive/condensed", format: jsonl}
"""
"""Every file closes a segment, and compaction runs only when it is asked to."""
KEPT_FOR_A_WHILE = """
name: shortened
source:
  kafka: {topics: ["shortened"], format: json}
schedule: null
log: {compaction: {policy: none, schedule: null}}
writers:
  - {name: accounts, kind: collection, keyspace: shortened, envelope: upsert, key: {id: text},
     columns: {owner: text}, keep: 90d}
"""
"""Its log is never compacted, but old versions are removed."""
EXPIRING = """
name: expiring
source:
  kafka: {topics: ["expiring"]}
schedule: null
writers:
  - {name: cassandra, kind: journal, keyspace: expiring}
expiry: {schedule: "@daily", timezone: Europe/Prague, max_purges: 3}
"""
"""Its days end in another zone than UTC, and more than three entities are suspicious."""
SYNCED = """
name: synced
source:
  kafka: {topics: ["synced"], format: oplog}
schedule: null
writers:
  - {name: objects, kind: collection, keyspace: synced, envelope: oplog}
"""
"""Operations on objects, which are synchronised with dumps."""
TURNS = Turns()
KEPT = "TIDEMARK_TEST_SERVICES"
"""Names a folder whose services are used, and go on running afterwards: for one test again and again."""
BROKEN = 'name: broken\nsource:\n  kafka: {topics: ["broken"]}\nwritters: []\n'


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the modules into an order in which two processes have always something to do."""
    here = Path(__file__).parent
    places = {here / f"{name}.py": place for place, name in enumerate(FIRST)}
    assert all(path.exists() for path in places), "a module of FIRST is gone"
    items.sort(key=lambda item: places.get(item.path, len(FIRST)))


def declare(folder: Path, name: str, **connections: str) -> None:
    defaults = {service: f"{service}_default" for service in ("kafka", "cassandra", "spark")}
    (folder / f"{name}.yaml").write_text(PIPELINE.format(name=name, **defaults | connections))


@dataclass(frozen=True)
class Services:
    """The running services and what tests do with them."""

    settings: Settings
    state: State
    airflow: AirflowApi

    @property
    def kafka(self) -> KafkaConnection:
        return KafkaConnection(servers=f"{LOOPBACK}:{self.settings.kafka_port}")

    @property
    def cassandra(self) -> CassandraConnection:
        return CassandraConnection(hosts=(LOOPBACK,), port=self.settings.cassandra_port)

    @property
    def spark(self) -> SparkConnection:
        """The Connect server."""
        port, token = self.settings.spark_port, token_file(self.settings).read_text().strip()
        return SparkConnection(address=f"sc://localhost:{port}", token=token)

    @property
    def session(self) -> Any:
        return connect(self.cassandra)

    def create_topic(self, name: str, partitions: int = 2, **configs: str) -> None:
        with KafkaAdminClient(**self.kafka.client_options()) as admin:
            admin.create_topics([NewTopic(name, partitions, 1, topic_configs=configs)])

    def send(self, topic: str, actions: list[Action]) -> None:
        send_actions(self.kafka, topic, actions)

    def replicate(self, pipeline: str, expected: str = "success", seconds: float = 480) -> str:
        """Trigger the pipeline's DAG, wait for its end; the run's id."""
        run_id = self.begin(pipeline)
        self.wait_for_end(pipeline, run_id, expected, seconds)
        return run_id

    def begin(self, pipeline: str) -> str:
        """Trigger the pipeline's DAG; the run's id."""
        airflow, dag_id = self.airflow, f"{pipeline}.replicate"
        wait_until(lambda: airflow.has_dag(dag_id), what=f"{dag_id} known to Airflow")
        airflow.unpause(dag_id)
        return airflow.trigger(dag_id)

    def wait_for_end(
        self, pipeline: str, run_id: str, expected: str = "success", seconds: float = 480
    ) -> None:
        """Wait for the end of a run of the pipeline's DAG."""
        airflow, dag_id = self.airflow, f"{pipeline}.replicate"
        ended = ("success", "failed")
        wait_until(lambda: airflow.run(dag_id, run_id)["state"] in ended, seconds, f"the end of {run_id}")
        states = {task.task_id: task.state for task in airflow.tasks(dag_id, run_id)}
        assert airflow.run(dag_id, run_id)["state"] == expected, (states, self.task_logs(dag_id, run_id))

    def resume_of(self, pipeline: str, after: int = 0) -> str:
        """The id of the newest run of the pipeline's resume, once there are more than ``after``."""
        path = f"/dags/{pipeline}.resume/dagRuns"

        def runs() -> list[str]:
            found = self.airflow.request("GET", path, "list the resumes", params={"order_by": "id"})
            return [run["dag_run_id"] for run in found["dag_runs"]]

        return wait_until(lambda: found if len(found := runs()) > after else None, 180, "a resume")[-1]

    def wait_for_task(self, dag_id: str, run_id: str, task_id: str, *states: str) -> None:
        """Wait until a task of a run is in one of these states."""

        def state() -> str | None:
            tasks = self.airflow.tasks(dag_id, run_id)
            return next((task.state for task in tasks if task.task_id == task_id), None)

        wait_until(lambda: state() in states, 300, f"{task_id} of {run_id} {states}, {state()}")

    def wait_for_question(self, dag_id: str, run_id: str, task_id: str) -> None:
        """Wait until a task asks a person and may be answered.

        Airflow 3.3 loses an answer that overtakes the executor's own report of the task that asked.
        """
        self.wait_for_task(dag_id, run_id, task_id, "awaiting_input")
        log = self.settings.home / "logs" / "airflow-scheduler.log"
        place = f"dag_id='{dag_id}', task_id='{task_id}', run_id='{run_id}'"
        report = f"success for task instance TaskInstanceKey({place}"
        wait_until(
            lambda: report in log.read_text(errors="replace"), 180, f"the executor's report of {task_id}"
        )

    def answer(self, dag_id: str, run_id: str, task_id: str, option: str, **params: str) -> None:
        """Answer as a person does under Required Actions."""
        self.wait_for_question(dag_id, run_id, task_id)
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/-1/hitlDetails"
        body = {"chosen_options": [option], "params_input": params}
        self.airflow.request("PATCH", path, "answer", json=body)

    def wait_for_run(self, dag_id: str, run_id: str) -> str:
        """The state in which a run ended."""
        ended = ("success", "failed")
        wait_until(lambda: self.airflow.run(dag_id, run_id)["state"] in ended, 480, f"the end of {run_id}")
        return str(self.airflow.run(dag_id, run_id)["state"])

    def task_logs(self, dag_id: str, run_id: str) -> str:
        folder = self.settings.home / "airflow" / "logs" / f"dag_id={dag_id}" / f"run_id={run_id}"
        return "\n".join(path.read_text() for path in sorted(folder.rglob("*.log")))


def shared_folder(config: pytest.Config) -> Path:
    """The folder that all processes of this test session have in common."""
    if kept := os.environ.get(KEPT):
        Path(kept).mkdir(parents=True, exist_ok=True)
        return Path(kept)
    own: Path = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    folder = (own.parent if hasattr(config, "workerinput") else own) / "system"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Wait for the module's turn, before any fixture: also starting the services belongs to it."""
    if isinstance(item, pytest.Function) and "services" in item.fixturenames:
        TURNS.take(item.module, shared_folder(item.config) / "modules.lock")


def pytest_sessionfinish() -> None:
    """The last module's turn is over."""
    TURNS.give_back()


@pytest.fixture(scope="session")
def services(pytestconfig: pytest.Config) -> Iterator[Services]:
    """The services, started by the first process that asks for them and stopped by the last."""
    folder = shared_folder(pytestconfig)
    users, start, environment = (folder / name for name in ("users.lock", "start.lock", "environment.json"))
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("AIRFLOW", "TIDEMARK_HOME"))]:
            patch.delenv(name)
        try:
            with locked(users, alone=False):
                with locked(start, alone=True):
                    if not environment.exists():
                        environment.write_text(json.dumps(start_services(folder)))
                    for name, value in json.loads(environment.read_text()).items():
                        patch.setenv(name, value)
                settings = Settings.read()
                with AirflowApi(settings) as airflow:
                    yield Services(settings, State.read(settings), airflow)
        finally:
            disconnect_all()
            if environment.exists() and KEPT not in os.environ and is_last(users):
                down(Settings.read())
                lines = {p.pid: " ".join(p.info["cmdline"] or ()) for p in psutil.process_iter(["cmdline"])}
                left = [pid for pid, line in lines.items() if str(folder / "home") in line]
                assert left == [], "down left processes behind"


@pytest.fixture(scope="session")
def spark_engine(request: pytest.FixtureRequest, services: Services) -> SparkConnection | None:
    """The engine of a test's applications: the Connect server, or an application each where a test says
    ``both_engines`` (``tests/support/services/engines.py``)."""
    return None if getattr(request, "param", "connect") == "application" else services.spark


@pytest.fixture(scope="module")
def spark(services: Services) -> Iterator[Any]:
    """A Spark session of one module that knows the services' Cassandra."""
    from tests.support.services.cassandra_tables import spark_on

    with spark_on(services.cassandra) as session:
        yield session


@pytest.fixture(scope="module")
def keyspace(services: Services, spark: Any) -> Iterator[Any]:
    """A keyspace of one module, which that session knows."""
    from tests.support.services.cassandra_tables import new_keyspace

    with new_keyspace(services.session, spark) as made:
        yield made


def start_services(folder: Path) -> dict[str, str]:
    """Start everything in a home of its own; the environment for using it."""
    pipelines = folder / "pipelines"
    pipelines.mkdir()
    for name in ("idle", "unreachable", "compacted"):
        declare(pipelines, name)
    marked = {"kafka": "kafka_marked", "cassandra": "cassandra_marked"}
    declare(pipelines, "clustered", spark="spark_cluster")
    declare(pipelines, "submitted", spark="spark_local", **marked)
    declare(pipelines, "killed", spark="spark_local")
    declare(pipelines, "skeleton", **marked)
    with (pipelines / "skeleton.yaml").open("a") as skeleton:
        skeleton.write("limits: {max_records_in_process: 0}\n")  # everything on the Connect server
    declare(pipelines, "mistrusted", kafka="kafka_mistrusted", cassandra="cassandra_marked")
    for name, on_failure in (("walled", "stop_pipeline"), ("barred", "stop_writer")):
        (pipelines / f"{name}.yaml").write_text(WRITERS.format(name=name, on_failure=on_failure))
    followed = WRITERS.format(name="followed", on_failure="stop_writer")
    (pipelines / "followed.yaml").write_text(f"{followed}follow: {{every: 1s, for: 10s}}\n")
    (pipelines / "condensed.yaml").write_text(CONDENSED)
    (pipelines / "expiring.yaml").write_text(EXPIRING)
    (pipelines / "shortened.yaml").write_text(KEPT_FOR_A_WHILE)
    (pipelines / "synced.yaml").write_text(SYNCED)
    (pipelines / "broken.yaml").write_text(BROKEN)
    used: set[int] = set()
    environment = {"TIDEMARK_HOME": str(folder / "home"), "TIDEMARK_PIPELINES": str(pipelines)}
    for service in ("KAFKA", "CASSANDRA", "AIRFLOW", "SPARK"):
        port = free_port(used)
        environment[f"TIDEMARK_{service}_PORT"] = str(port)
        used.add(port)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        settings = Settings.read()
        ensure_class_archive(settings)
        make_home(settings)
        secured_port = free_port(used)
        certificate = secure_kafka(settings.home / "kafka", secured_port)
        master_port = free_port({*used, secured_port})
        State(ports={"spark.master": master_port}).write(settings)
        further = further_connections(settings, master_port, secured_port, certificate)
        for name, value in further.items():
            patch.setenv(name, value)
        try:
            wanted = ("kafka", "cassandra", "spark", "cluster", "airflow")
            up(settings, wanted, SparkMode.CONNECT, cassandra_heap="1g", spark_heap="1g")
        except BaseException:
            down(settings)
            raise
    return environment | further
