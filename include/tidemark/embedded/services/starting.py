"""Starting one service: only programs that do not run, and waiting until it answers a real request."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from tidemark.embedded.errors import OnAnotherPort, PortTaken, ServiceDied, ServiceSilent
from tidemark.embedded.ports import holder, is_free
from tidemark.embedded.processes import PidFile, start, stop, tail
from tidemark.embedded.services.service import Program, Service
from tidemark.settings import Settings

Report = Callable[[str, str], None]
"""A callback for progress: the name of a service, and its phase."""
LAST_LINES = 15


def refuse_taken_ports(settings: Settings, service: Service) -> None:
    """Refuse a port that another process holds, before anything is started."""
    for program in service.programs:
        record = PidFile.read(settings.home / "run", program.name)
        if record and record.process():
            if record.port and program.port and record.port != program.port:
                raise OnAnotherPort(program.title, record.port, program.port)
        elif not record:  # descendants of a killed program may hold the port; they are stopped first
            _refuse_taken_port(program)


def start_service(settings: Settings, service: Service, report: Report, given_up: threading.Event) -> None:
    """Start the programs of a service that do not run, and wait until it answers or ``given_up`` is set."""
    run, began = settings.home / "run", time.monotonic()
    records = {program.name: PidFile.read(run, program.name) for program in service.programs}
    dead = [program for program in service.programs if not _runs(records[program.name])]
    if dead:
        if remains := [record for program in dead if (record := records[program.name])]:
            report(service.name, "removing what a killed process left")
            stop(remains, run)
        for program in dead:
            _refuse_taken_port(program)
        report(service.name, "setting up")
        service.prepare()
    if given_up.is_set():
        return
    report(service.name, "starting" if dead else "asking")
    for program in dead:
        records[program.name] = start(program, run, log_of(settings, program.name))
    if _wait(settings, service, [record for record in records.values() if record], given_up):
        if dead:
            service.first_use()
        took = f" after {time.monotonic() - began:.1f} s" if dead else ", as before"
        report(service.name, f"running at {service.address}{took}")


def log_of(settings: Settings, program: str) -> Path:
    """The log file of a program."""
    return settings.home / "logs" / f"{program}.log"


def _runs(record: PidFile | None) -> bool:
    return record is not None and record.process() is not None


def _refuse_taken_port(program: Program) -> None:
    if program.port and program.variable and not is_free(program.port):
        raise PortTaken(program.title, program.port, program.variable, *holder(program.port))


def _wait(settings: Settings, service: Service, records: list[PidFile], given_up: threading.Event) -> bool:
    """Wait until the service answers. Raises ``ServiceDied``, with its last lines, if a program ends."""
    titles = {program.name: program.title for program in service.programs}
    since = max(record.created for record in records)
    deadline = time.monotonic() + service.deadline
    while True:
        answer = service.question(since)
        for record in records:
            if not _runs(record):
                log = log_of(settings, record.name)
                raise ServiceDied(titles[record.name], log, tail(log, LAST_LINES, record.log_start))
        if answer is None:
            return True
        if time.monotonic() > deadline:
            log = log_of(settings, records[0].name)
            raise ServiceSilent(service.title, service.deadline, log, answer)
        if given_up.wait(0.1):
            return False
