"""What a service is: its programs, how it is set up, and the request that only a healthy one answers."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidemark.embedded.ports import LOOPBACK
from tidemark.settings import Settings

SERVICES = ("kafka", "cassandra", "airflow", "spark", "cluster", "oplog")
"""All services, in the order of output. Spark's mode decides whether ``spark`` or ``cluster`` is used, if
any; ``oplog`` is used where a pipeline file declares an agent."""


@dataclass(frozen=True, slots=True)
class Program:
    """One process of a service; ``variable`` is the environment variable that sets its port."""

    name: str
    title: str
    command: tuple[str, ...]
    environ: Mapping[str, str]
    cwd: Path
    port: int | None
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """A service, ready to be started.

    ``prepare`` makes folders and files before the first program starts; it is cheap where they exist.
    ``question`` makes a real request of the running service. It returns None when that was answered,
    otherwise what came instead. Its argument is the start of the youngest program: older health reports do
    not count. ``first_use`` is called once after a start, when it has answered: what a service prepares only
    when it is used should not wait for a run.
    """

    name: str
    title: str
    programs: tuple[Program, ...]
    prepare: Callable[[], None]
    question: Callable[[float], str | None]
    deadline: float
    address: str
    first_use: Callable[[], None] = lambda: None


def one_program_service(
    settings: Settings,
    name: str,
    title: str,
    command: Sequence[str],
    port: int,
    *,
    prepare: Callable[[], None],
    question: Callable[[int], str | None],
    deadline: float,
) -> Service:
    """A service of one program, which answers on this port; ``question`` is asked with the port."""
    variable = f"TIDEMARK_{name.upper()}_PORT"
    program = Program(name, title, tuple(command), dict(os.environ), settings.home, port, variable)
    address = f"{LOOPBACK}:{port}"
    return Service(name, title, (program,), prepare, lambda _: question(port), deadline, address)
