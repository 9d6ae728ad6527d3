"""Services up and down.

``up`` starts what does not run and waits until each service answers a real request; what runs is left alone. ``down``
ends what the pid files of this home name, with all descendants, and nothing else. Data stays.
"""

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from tidemark.embedded import airflow, cassandra, kafka, spark
from tidemark.embedded.errors import EmbeddedError, OnAnotherPort, PortTaken, ServiceDied, ServiceSilent
from tidemark.embedded.home import at_work, make_home
from tidemark.embedded.ivy import Progress
from tidemark.embedded.jarlock import version_of
from tidemark.embedded.jars import Jars, ensure_jars
from tidemark.embedded.java import Java, find_java
from tidemark.embedded.ports import free_port, holder, is_free
from tidemark.embedded.processes import Record, start, stop, tail
from tidemark.embedded.service import SERVICES, Program, Service
from tidemark.embedded.state import SparkMode, State
from tidemark.settings import Settings

INTERNAL_PORTS = {
    "kafka": kafka.INTERNAL_PORTS,
    "cassandra": cassandra.INTERNAL_PORTS,
    "airflow": airflow.INTERNAL_PORTS,
    "spark": spark.INTERNAL_PORTS,
}
Report = Callable[[str, str], None]
"""Told what happens: a service's name, and what it does now."""


@dataclass(frozen=True, slots=True)
class Running:
    """What ``up`` leaves behind: the state others need, and how to reach each service."""

    settings: Settings
    state: State
    addresses: dict[str, str]


def up(
    settings: Settings,
    only: Collection[str] = (),
    spark_mode: SparkMode | None = None,
    *,
    cassandra_heap: str = cassandra.HEAP,
    report: Report = lambda service, phase: None,
    fetching: Progress = lambda _: None,
) -> Running:
    """Start the services that do not run yet; returns when all answer."""
    make_home(settings)
    java = find_java(os.environ)
    with at_work(settings, lambda: report("", "waiting for another command in this home")):
        state = State.read(settings)
        mode = spark_mode or ("cluster" if "spark" in only else state.spark)
        wanted = [
            name for name in SERVICES if (name in only if only else name != "spark" or mode == "cluster")
        ]
        jars = (
            ensure_jars(settings, progress=fetching)
            if {"kafka", "cassandra"} & {*wanted}
            else Jars(settings.cache)
        )
        state = replace(_with_ports(settings, state, wanted), spark=mode, java_home=str(java.home))
        state = replace(state, versions=_versions(java))
        state.write(settings)
        services = [_service(name, settings, state, java, jars, cassandra_heap) for name in wanted]
        _start_all(settings, services, report)
    return Running(settings, state, {service.name: service.address for service in services})


def down(settings: Settings, only: Collection[str] = (), report: Report = lambda service, phase: None) -> int:
    """Stop what runs in this home; returns how many processes ended."""
    run = settings.home / "run"
    if not run.exists():
        return 0
    with at_work(settings, lambda: report("", "waiting for another command in this home")):
        records = [record for record in all_records(settings) if not only or service_of(record.name) in only]
        for name in sorted({service_of(record.name) for record in records}):
            report(name, "stopping")
        return stop(records, run) if records else 0


def all_records(settings: Settings) -> list[Record]:
    """The record of every program that was started in this home and not stopped."""
    run = settings.home / "run"
    found = (Record.read(run, path.stem) for path in sorted(run.glob("*.pid")))
    return [record for record in found if record]


def service_of(program: str) -> str:
    """The service a program belongs to: ``airflow-scheduler`` → ``airflow``."""
    return program.split("-")[0]


def _service(name: str, settings: Settings, state: State, java: Java, jars: Jars, heap: str) -> Service:
    match name:
        case "kafka":
            return kafka.kafka_service(settings, state, java, jars)
        case "cassandra":
            return cassandra.cassandra_service(settings, state, java, jars, heap)
        case "airflow":
            return airflow.airflow_service(settings, state)
        case _:
            return spark.spark_service(settings, state, java)


def _with_ports(settings: Settings, state: State, wanted: Collection[str]) -> State:
    """Choose the ports nobody but us needs to know; one that others took while its service was down is changed."""
    live = {service_of(record.name) for record in all_records(settings) if record.process()}
    used = {settings.kafka_port, settings.cassandra_port, settings.airflow_port, *state.ports.values()}
    chosen: dict[str, int] = {}
    for name in (port for service in wanted for port in INTERNAL_PORTS[service]):
        kept = state.ports.get(name)
        if kept is None or (name.split(".")[0] not in live and not is_free(kept)):
            chosen[name] = free_port(used | {*chosen.values()})
    return state.with_ports(chosen)


def _versions(java: Java) -> dict[str, str]:
    modules = {"kafka": "kafka_2.13", "cassandra": "cassandra-all", "spark": "spark-sql-kafka-0-10_2.13"}
    return {"java": java.full_version, **{name: version_of(module) for name, module in modules.items()}}


def _start_all(settings: Settings, services: Sequence[Service], report: Report) -> None:
    """Start services side by side; one that fails does not keep the others from coming up."""
    for service in services:
        _refuse_taken_ports(settings, service)
    given_up = threading.Event()
    with ThreadPoolExecutor(len(services) or 1) as pool:
        tasks = [pool.submit(_start_one, settings, service, report, given_up) for service in services]
        try:
            failures = [error for task in tasks if (error := task.exception())]
        except BaseException:  # Ctrl-C: what was started is recorded, and `down` finds it
            given_up.set()
            raise
    for failure in failures:
        if not isinstance(failure, EmbeddedError):
            raise failure
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise EmbeddedError("\n".join(str(failure) for failure in failures))


def _refuse_taken_ports(settings: Settings, service: Service) -> None:
    for program in service.programs:
        record = Record.read(settings.home / "run", program.name)
        if record and record.process():
            if record.port != program.port and record.port and program.port:
                raise OnAnotherPort(program.title, record.port, program.port)
        elif program.port and program.variable and not record and not is_free(program.port):
            raise PortTaken(program.title, program.port, program.variable, *holder(program.port))


def _start_one(settings: Settings, service: Service, report: Report, given_up: threading.Event) -> None:
    run = settings.home / "run"
    began = time.monotonic()
    records = {program.name: Record.read(run, program.name) for program in service.programs}
    dead = [program for program in service.programs if not _alive(records[program.name])]
    if dead:
        remains = [record for program in dead if (record := records[program.name])]
        if remains:
            report(service.name, "removing what a killed process left")
            stop(remains, run)
        for program in dead:
            if program.port and program.variable and not is_free(program.port):
                raise PortTaken(program.title, program.port, program.variable, *holder(program.port))
        report(service.name, "setting up")
        service.prepare()
        for program in dead:
            log = settings.home / "logs" / f"{program.name}.log"
            records[program.name] = start(
                program.name, program.command, program.environ, run, log, program.cwd, program.port
            )
    report(service.name, "starting" if dead else "asking")
    _wait(settings, service, [record for record in records.values() if record], given_up)
    took = f" after {time.monotonic() - began:.1f} s" if dead else ", as before"
    report(service.name, f"running at {service.address}{took}")


def _alive(record: Record | None) -> bool:
    return record is not None and record.process() is not None


def _wait(settings: Settings, service: Service, records: Sequence[Record], given_up: threading.Event) -> None:
    """Until the service answers; a process that dies meanwhile ends the wait with its last words."""
    since = max(record.created for record in records)
    deadline = time.monotonic() + service.deadline
    while True:
        for record, program in _pairs(records, service.programs):
            if record.process() is None:
                log = settings.home / "logs" / f"{record.name}.log"
                raise ServiceDied(program.title, log, tail(log, 15, record.log_start))
        answer = service.question(since)
        if answer is None:
            return
        if time.monotonic() > deadline:
            log = settings.home / "logs" / f"{records[0].name}.log"
            raise ServiceSilent(service.title, service.deadline, log, answer)
        if given_up.wait(0.1):
            return


def _pairs(records: Sequence[Record], programs: Sequence[Program]) -> Iterator[tuple[Record, Program]]:
    by_name = {program.name: program for program in programs}
    return ((record, by_name[record.name]) for record in records)
