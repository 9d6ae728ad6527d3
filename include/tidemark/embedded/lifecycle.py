"""Starting and stopping the services of a home.

``up`` starts services that do not run and waits until each answers a real request; running ones are left
alone. ``down`` stops the processes in this home's pid files with all their descendants, and no others. Data
stays.
"""

import os
import threading
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from tidemark.embedded.errors import EmbeddedError, NoAgentDeclared
from tidemark.embedded.home import at_work, make_home
from tidemark.embedded.jars.fetch import ensure_jars
from tidemark.embedded.jars.ivy import Progress
from tidemark.embedded.jars.lock_file import version_of
from tidemark.embedded.java import Java, find_java
from tidemark.embedded.ports import free_port, is_free
from tidemark.embedded.processes import PidFile, stop
from tidemark.embedded.services import airflow, cassandra, kafka, oplog, spark_cluster, spark_connect
from tidemark.embedded.services.service import SERVICES, Service
from tidemark.embedded.services.starting import Report, refuse_taken_ports, start_service
from tidemark.embedded.state import SparkMode, State
from tidemark.settings import Settings

INTERNAL_PORTS = {
    "kafka": kafka.INTERNAL_PORTS,
    "cassandra": cassandra.INTERNAL_PORTS,
    "airflow": airflow.INTERNAL_PORTS,
    "spark": (),
    "cluster": spark_cluster.INTERNAL_PORTS,
    "oplog": (),
}
_OF_MODE = {SparkMode.CONNECT: "spark", SparkMode.CLUSTER: "cluster"}
"""The service that runs Spark; none in local mode."""
BUSY = "waiting for another command in this home"


@dataclass(frozen=True, slots=True)
class Heaps:
    """The memory of services, as Java takes it."""

    cassandra: str
    spark: str


@dataclass(frozen=True, slots=True)
class Running:
    """The result of ``up``: the state of the home, and the address of each service."""

    settings: Settings
    state: State
    addresses: dict[str, str]


def up(
    settings: Settings,
    only: Collection[str] = (),
    spark_mode: SparkMode | None = None,
    *,
    cassandra_heap: str = cassandra.HEAP,
    spark_heap: str = spark_connect.HEAP,
    report: Report = lambda service, phase: None,
    fetching: Progress = lambda _: None,
) -> Running:
    """Start the services that do not run yet; returns when all answer.

    Without ``only``: Kafka, Cassandra, Airflow, what the mode of Spark needs, and the declared OpLog agents.
    The mode is kept until another one is given; it determines Airflow's connection ``spark_default``.
    """
    make_home(settings)
    java = find_java(os.environ)
    if java.warning:
        report("java", java.warning)
    with at_work(settings, lambda: report("", BUSY)):
        before = State.read(settings)
        mode = spark_mode or before.spark
        wanted = [name for name in SERVICES if name in (only or usual_services(settings, mode))]
        if oplog.NAME in wanted and not oplog.local_agents(settings):
            raise NoAgentDeclared
        state = replace(before, spark=mode, java_home=str(java.home), versions=_versions(java))
        state = _with_ports(settings, state, wanted)
        state.write(settings)
        if before.spark != mode and "airflow" in wanted:
            _stop(settings, ["airflow"], "stopping, because Spark's mode has changed", report)
        if spark_mode and not only:
            others = {*_OF_MODE.values()} - {*services_of_mode(mode)}
            _stop(settings, others, f"stopping, because Spark's mode is {mode} now", report)
        heaps = Heaps(cassandra_heap, spark_heap)
        services = [_service(name, settings, state, java, heaps, fetching) for name in wanted]
        _start_all(settings, services, report)
    return Running(settings, state, {service.name: service.address for service in services})


def down(settings: Settings, only: Collection[str] = (), report: Report = lambda service, phase: None) -> int:
    """Stop services of this home; returns the number of processes that ended."""
    if not (settings.home / "run").exists():
        return 0
    with at_work(settings, lambda: report("", BUSY)):
        wanted = set(only or SERVICES)
        # Agents first: they still send to Kafka what they have taken in.
        agents = _stop(settings, wanted & {oplog.NAME}, "stopping", report)
        return agents + _stop(settings, wanted - {oplog.NAME}, "stopping", report)


def all_records(settings: Settings) -> list[PidFile]:
    """The pid files of all programs that were started in this home and not stopped."""
    run = settings.home / "run"
    found = (PidFile.read(run, path.stem) for path in sorted(run.glob("*.pid")))
    return [record for record in found if record]


def service_of(program: str) -> str:
    """The service a program belongs to: ``airflow-scheduler`` → ``airflow``."""
    if program.startswith(("spark-master", "spark-worker")):
        return "cluster"
    return program.split("-")[0]


def services_of_mode(mode: SparkMode) -> list[str]:
    """The services that every home has in this mode of Spark."""
    others = {*_OF_MODE.values(), oplog.NAME} - {_OF_MODE.get(mode)}
    return [name for name in SERVICES if name not in others]


def usual_services(settings: Settings, mode: SparkMode) -> list[str]:
    """The services that ``up`` starts without ``only``: with agents, where pipeline files declare some."""
    return [*services_of_mode(mode), *([oplog.NAME] if oplog.local_agents(settings) else [])]


def _service(
    name: str, settings: Settings, state: State, java: Java, heaps: Heaps, fetching: Progress
) -> Service:
    match name:
        case "kafka":
            return kafka.kafka_service(settings, state, java, ensure_jars(settings, progress=fetching))
        case "cassandra":
            jars = ensure_jars(settings, progress=fetching)
            return cassandra.cassandra_service(settings, state, java, jars, heaps.cassandra)
        case "airflow":
            return airflow.airflow_service(settings, state)
        case "spark":
            jars = ensure_jars(settings, "spark", fetching)
            return spark_connect.spark_connect_service(settings, java, jars, heaps.spark)
        case oplog.NAME:
            return oplog.oplog_service(settings, state)
        case _:
            return spark_cluster.spark_cluster_service(settings, state, java)


def _with_ports(settings: Settings, state: State, wanted: Collection[str]) -> State:
    """Choose internal ports; a port that another process took while its service was down is replaced."""
    live = {service_of(record.name) for record in all_records(settings) if record.process()}
    public = (settings.kafka_port, settings.cassandra_port, settings.airflow_port, settings.spark_port)
    used = {*public, settings.oplog_port, *state.ports.values()}
    chosen: dict[str, int] = {}
    for service in wanted:
        for name in INTERNAL_PORTS[service]:
            kept = state.ports.get(name)
            if kept is None or (service not in live and not is_free(kept)):
                chosen[name] = free_port(used | {*chosen.values()})
    return state.with_ports(chosen)


def _versions(java: Java) -> dict[str, str]:
    modules = {"kafka": "kafka_2.13", "cassandra": "cassandra-all", "spark": "spark-sql-kafka-0-10_2.13"}
    return {"java": java.full_version, **{name: version_of(module) for name, module in modules.items()}}


def _stop(settings: Settings, services: Collection[str], why: str, report: Report) -> int:
    records = [record for record in all_records(settings) if service_of(record.name) in services]
    names = sorted({service_of(record.name) for record in records})
    for name in names:
        report(name, why)
    ended = stop(records, settings.home / "run") if records else 0
    for name in names:
        report(name, "stopped")
    return ended


def _start_all(settings: Settings, services: Sequence[Service], report: Report) -> None:
    """Start services in parallel, those that need others after them. A failure of one does not stop those
    that do not need it."""
    for service in services:
        refuse_taken_ports(settings, service)
    later = [service for service in services if service.name == oplog.NAME]
    _start_together(settings, [service for service in services if service not in later], report)
    _start_together(settings, later, report)


def _start_together(settings: Settings, services: Sequence[Service], report: Report) -> None:
    if not services:
        return
    given_up = threading.Event()
    with ThreadPoolExecutor(len(services)) as pool:
        tasks = [pool.submit(start_service, settings, service, report, given_up) for service in services]
        try:
            failures = [error for task in tasks if (error := task.exception())]
        except BaseException:  # Ctrl-C: started processes have pid files, so `down` finds them
            given_up.set()
            raise
    defects = [failure for failure in failures if not isinstance(failure, EmbeddedError)]
    if defects or len(failures) == 1:
        raise [*defects, *failures][0]
    if failures:
        raise EmbeddedError("\n".join(str(failure) for failure in failures))
