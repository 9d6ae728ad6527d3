"""What services have in common: programs, a way to set them up, a question only a healthy one answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tidemark.embedded.ports import LOOPBACK

SERVICES = ("kafka", "cassandra", "airflow", "spark")
"""All services, in the order people read about them. Spark is one only when a cluster is asked for."""


@dataclass(frozen=True, slots=True)
class Program:
    """One process of a service. ``variable`` is what a person sets to move it to another port."""

    name: str
    title: str
    command: tuple[str, ...]
    environ: Mapping[str, str]
    cwd: Path
    port: int | None
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Service:
    """A service as one can start it.

    ``prepare`` makes folders and files before the first program starts; cheap when that was done before.
    ``question`` makes a real request of the running service; it returns nothing when that was answered,
    otherwise what came instead. It is given the youngest program's start, because some report old news.
    """

    name: str
    title: str
    programs: tuple[Program, ...]
    prepare: Callable[[], None]
    question: Callable[[float], str | None]
    deadline: float
    address: str


def one_program_service(
    program: Program,
    prepare: Callable[[], None],
    question: Callable[[], str | None],
    deadline: float,
) -> Service:
    """A service that is one program of the same name and answers on that program's port."""
    return Service(
        name=program.name,
        title=program.title,
        programs=(program,),
        prepare=prepare,
        question=lambda _: question(),
        deadline=deadline,
        address=f"{LOOPBACK}:{program.port}",
    )
