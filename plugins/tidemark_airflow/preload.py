"""What the local executor's processes load before any task: a task is a fork, and finds it loaded.

Third-party packages stay loaded until Airflow is restarted, like all that Airflow itself has loaded. Our own
modules do not: a fork that finds one of their files changed, added or removed forgets all of them, and its
task reads them anew. So a task begins with the code that is on disk when it starts. Files that change while
it runs are not noticed here: what a task imports later is read as it is then. A task that opens a Spark
session refuses that (``CodeChanged``), and a follow ends within a minute.
Nothing here opens a connection or starts a Python thread: neither would survive the fork.
"""

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tidemark.settings import Settings

OTHERS = (
    *("airflow.providers.apache.spark.operators.spark_submit", "airflow.providers.standard.operators.hitl"),
    "airflow.providers.standard.decorators.branch_python",
    "airflow.providers.standard.operators.trigger_dagrun",
    *("cassandra.cluster", "cassandra.concurrent", "cassandra.metadata", "cassandra.query"),
    *("confluent_kafka.admin", "kafka.admin"),
    *("great_expectations", "numpy", "pandas"),
    *("pyarrow.compute", "pyarrow.dataset", "pyarrow.fs", "pyarrow.parquet"),
    *("pyspark.sql.connect.session", "pyspark.sql.functions", "pyspark.sql.observation"),
    *("croniter", "lz4.frame", "msgspec", "pydantic", "ruamel.yaml", "structlog", "zstandard"),
)
"""Third-party modules that take longer than a few milliseconds to import."""
OURS = (
    *("tidemark.app.open_pipeline", "tidemark.app.reconcile_idle", "tidemark.app.replicate"),
    *("tidemark.spark.application", "tidemark.spark.jobs.capture", "tidemark.spark.jobs.deliver"),
    "tidemark.spark.jobs.reconcile",
    *("tidemark_airflow.operators.audit", "tidemark_airflow.operators.reconcile"),
    *("tidemark_airflow.operators.spark_app", "tidemark_airflow.sensors.gate"),
    *("tidemark_airflow.tasks.gates", "tidemark_airflow.tasks.replicate"),
)
"""Modules of the tasks that run most often; they import the rest."""
PACKAGES = ("tidemark", "tidemark_airflow")
"""The packages that a fork forgets where a file of theirs has changed."""
CHATTY = ("great_expectations", "kafka")
"""Loggers that write dozens of lines for every task at level INFO."""

log = logging.getLogger(__name__)

Stamp = frozenset[tuple[str, int, int]]
"""Path, time of the last change (ns) and size of every module's file."""


def load(modules: Sequence[str]) -> list[str]:
    """Import modules; returns those that cannot be imported. A task that needs one reports why."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "False")
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    missing = []
    for module in modules:
        try:
            import_module(module)
        except Exception as error:
            log.warning("%s cannot be preloaded: %s: %s", module, type(error).__name__, error)
            missing.append(module)
    return missing


def stamp(folders: Sequence[Path]) -> Stamp:
    """What tells whether a module's file was changed, added or removed."""
    return frozenset(
        (entry.path, status.st_mtime_ns, status.st_size)
        for folder in folders
        for entry in _sources(folder)
        if (status := entry.stat())
    )


def _sources(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _sources(entry.path)
            elif entry.name.endswith(".py"):
                yield entry


@dataclass(frozen=True, slots=True)
class OwnModules:
    """Our own modules as they were loaded: ``forget_changed`` is called in every fork."""

    folders: tuple[Path, ...]
    loaded: Stamp

    @classmethod
    def load(cls) -> "OwnModules":
        """Load our modules. The stamp is taken first: a file that changes meanwhile counts as changed.

        Forks that find nothing changed also find the digest of what was loaded.
        """
        settings = Settings.read()
        folders = (settings.root / "include" / "tidemark", settings.root / "plugins" / "tidemark_airflow")
        taken = stamp(folders)
        if not load(OURS):
            from tidemark.spark.library_archive import library_digest

            library_digest()
        return cls(folders, taken)

    def forget_changed(self) -> None:
        """Let this process import all our modules anew, unless no file has changed since they were loaded."""
        try:
            is_changed = stamp(self.folders) != self.loaded
        except OSError:  # a file or folder went away while it was looked at
            is_changed = True
        if is_changed:
            for name in [name for name in sys.modules if name.split(".")[0] in PACKAGES]:
                del sys.modules[name]
