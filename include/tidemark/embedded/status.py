"""The status of a home's services. Read-only."""

import time
from dataclasses import asdict, dataclass
from typing import Literal

import psutil

from tidemark.embedded.lifecycle import all_records, service_of, usual_services
from tidemark.embedded.processes import PidFile, family
from tidemark.embedded.services import airflow, cassandra, kafka, oplog, spark_cluster, spark_connect
from tidemark.embedded.services.service import SERVICES
from tidemark.embedded.state import State
from tidemark.settings import Settings

_FRONT = {"airflow": "airflow-api-server", "spark": "spark-connect", "cluster": "spark-master"}
"""The program of a service that answers its health check."""


@dataclass(frozen=True, slots=True)
class ProgramStatus:
    """One line of ``tidemark services status``; ``memory`` is in bytes, with all children."""

    service: str
    program: str
    status: Literal["running", "silent", "died", "stopped"]
    pid: int | None = None
    port: int | None = None
    since: float | None = None
    memory: int | None = None
    detail: str | None = None

    def as_dict(self) -> dict[str, object]:
        """For ``--json``."""
        return asdict(self)


def service_status(settings: Settings) -> list[ProgramStatus]:
    """The status of every program; a service that was not started has one line."""
    state = State.read(settings)
    records = all_records(settings)
    usual = usual_services(settings, state.spark)
    lines: list[ProgramStatus] = []
    for name in SERVICES:
        mine = [record for record in records if service_of(record.name) == name]
        if not mine:
            if name in usual:
                lines.append(ProgramStatus(name, name, "stopped"))
            continue
        alive = [record for record in mine if record.process()]
        complaint = _ask(name, settings, state, mine) if len(alive) == len(mine) else None
        lines += [_line(name, record, complaint) for record in mine]
    return lines


def is_healthy(lines: list[ProgramStatus]) -> bool:
    """Whether at least one program runs, and every started program runs and answers."""
    kinds = {line.status for line in lines}
    return "running" in kinds and not kinds & {"died", "silent"}


def _line(service: str, record: PidFile, complaint: str | None) -> ProgramStatus:
    process = record.process()
    if process is None:
        return ProgramStatus(service, record.name, "died", record.pid, record.port)
    memory = 0
    for member in family([record]):
        try:
            memory += member.memory_info().rss
        except psutil.Error:
            continue
    kind: Literal["running", "silent"] = "silent" if complaint else "running"
    return ProgramStatus(
        service, record.name, kind, record.pid, record.port, process.create_time(), memory, complaint
    )


def _ask(name: str, settings: Settings, state: State, records: list[PidFile]) -> str | None:
    """The health check of ``up``, on the port the service was started with."""
    if name == oplog.NAME:
        ports = [record.port for record in records if record.port]
        return next((problem for port in ports if (problem := oplog.ask_agent(port))), None)
    front = _FRONT.get(name, name)
    port = next((record.port for record in records if record.name == front), None)
    if port is None:
        return f"{front} was not started"
    match name:
        case "kafka":
            return kafka.ask_kafka(port)
        case "cassandra":
            return cassandra.ask_cassandra(port)
        case "airflow":
            since = max(record.created for record in records)
            return airflow.ask_airflow(port, since)
        case "spark":
            return spark_connect.ask_connect(settings, port)
        case _:
            return spark_cluster.ask_cluster(state.ports["spark.master_ui"])


def uptime(line: ProgramStatus) -> str:
    """How long a program has been running, as text."""
    if line.since is None:
        return ""
    minutes, seconds = divmod(int(time.time() - line.since), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s"
