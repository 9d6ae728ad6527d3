"""The process from which Spark forks its Python workers (``spark.python.daemon.module``).

It loads the third-party modules that the library uses, once, so that a new worker has them. Spark starts one
such process for every session and does not end it with the session; this one ends by itself after it had no
worker for a while, and Spark starts another one when it is needed again. It loads neither the library nor
pipelines' own modules.
"""

import os
import signal
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FrameType

PRELOADED = (
    *("pyspark.worker", "pyspark.sql.datasource", "pyspark.sql.pandas.serializers"),
    *("numpy", "pyarrow", "pyarrow.compute", "pyarrow.parquet", "pyarrow.fs"),
    *("msgspec", "pydantic", "structlog", "lz4.frame", "zstandard", "ruamel.yaml", "croniter"),
    *("cassandra.cluster", "cassandra.concurrent", "cassandra.metadata", "cassandra.query"),
    *("kafka", "kafka.admin", "confluent_kafka"),
)
"""Modules of other packages that the library's tasks import. A module that is missing is left out."""
IDLE = 600.0
"""Seconds without a worker after which the process ends. Spark itself ends idle workers after a minute."""
_EVERY = 15.0


class IdleWatch:
    """Decides when a process that has no worker any more may end."""

    def __init__(self, now: float, most: float = IDLE) -> None:
        self._busy, self._most = now, most

    def is_over(self, now: float, has_workers: bool) -> bool:
        """Whether there has been no worker for the whole time."""
        if has_workers:
            self._busy = now
        return now - self._busy >= self._most


def preload() -> None:
    """Import what workers will need."""
    # More threads would not survive the fork, and tasks do their work in one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in PRELOADED:
        with suppress(ImportError):
            import_module(name)


def end_when_idle(watch: IdleWatch, every: float = _EVERY) -> None:
    """Check from time to time, by a timer that forked workers do not inherit."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    if not children.exists():  # no Linux: the process ends with the server
        return

    def look(number: int, frame: FrameType | None) -> None:
        if watch.is_over(time.monotonic(), bool(children.read_text().strip())):
            os._exit(0)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, every, every)


def main() -> None:
    """Load the modules, then serve Spark's requests for workers."""
    from pyspark.daemon import manager

    preload()
    idle = float(os.environ.get("TIDEMARK_WORKERS_IDLE", IDLE))
    end_when_idle(IdleWatch(time.monotonic(), idle), min(_EVERY, idle / 2))
    manager()


if __name__ == "__main__":
    main()
