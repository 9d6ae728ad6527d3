"""The logs of the services: their last lines, and following them."""

import difflib
import time
from collections.abc import Iterator
from pathlib import Path

from tidemark.embedded.errors import NoLog, UnknownService
from tidemark.embedded.processes import tail
from tidemark.embedded.services import oplog
from tidemark.embedded.services.airflow import COMPONENTS
from tidemark.embedded.services.service import SERVICES
from tidemark.embedded.services.spark_cluster import WORKERS
from tidemark.settings import Settings

PROGRAMS = (
    *("kafka", "cassandra"),
    *(f"airflow-{component}" for component in COMPONENTS),
    *("spark-connect", "spark-master", *(f"spark-worker-{number}" for number in range(1, WORKERS + 1))),
)
_FIRST = {"airflow": "airflow-scheduler", "spark": "spark-connect", "cluster": "spark-master"}


def log_file(settings: Settings, name: str) -> Path:
    """The log of a program; ``airflow`` alone means its scheduler, ``spark`` the Connect server and ``oplog``
    the first agent."""
    agents = tuple(sorted(path.stem for path in (settings.home / "logs").glob(f"{oplog.PREFIX}*.log")))
    first = {**_FIRST, oplog.NAME: agents[0]} if agents else _FIRST
    known = (*PROGRAMS, *agents)
    program = first.get(name, name)
    if program not in (*known, oplog.NAME):
        raise UnknownService(name, known, _guess(name, known))
    log = settings.home / "logs" / f"{program}.log"
    if not log.exists():
        raise NoLog(program, log)
    return log


def checked_services(text: str) -> list[str]:
    """Parse a comma-separated list of services; empty for an empty text. Raises ``UnknownService``."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in SERVICES:
            raise UnknownService(name, SERVICES, _guess(name, SERVICES))
    return names


def read_log(settings: Settings, name: str, lines: int, follow: bool = False) -> Iterator[str]:
    """The last lines of a log and, with ``follow``, every new one, also across a restart."""
    log = log_file(settings, name)
    seen = log.stat().st_size
    yield from tail(log, lines, end_at=seen)
    while follow:
        if log.stat().st_size < seen:  # rotated
            seen = 0
        with log.open("rb") as file:
            file.seek(seen)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        yield from whole.decode(errors="replace").splitlines()
        seen += len(whole)
        if not whole:
            time.sleep(0.2)


def _guess(name: str, known: tuple[str, ...]) -> str | None:
    return next(iter(difflib.get_close_matches(name, [*known, *SERVICES], n=1)), None)
