"""Airflow's local executor, with the third-party packages of Tidemark's tasks loaded before workers are forked.

A task of the local executor is a fork of a worker, which is a fork of the scheduler: what the scheduler has
loaded, no task loads again. Great Expectations alone takes two seconds. Only third-party packages are loaded
here, never Tidemark's own modules: those are read anew by every task, so a changed file needs no restart.
Nothing here opens a connection or starts a Python thread: neither would survive the fork.
"""

import logging
import os
from collections.abc import Sequence
from importlib import import_module

from airflow.executors.local_executor import LocalExecutor

PACKAGES = (
    "airflow.providers.apache.spark.operators.spark_submit",
    "airflow.providers.standard.decorators.branch_python",
    "airflow.providers.standard.operators.trigger_dagrun",
    "cassandra.cluster",
    "cassandra.concurrent",
    "confluent_kafka.admin",
    "great_expectations",
    "kafka.admin",
    "numpy",
    "pandas",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pyspark.sql.connect.session",
    "pyspark.sql.functions",
    "ruamel.yaml",
    "zstandard",
)
"""What tasks import, directly or not, and what takes longer to import than a few milliseconds."""

log = logging.getLogger(__name__)


def preload(packages: Sequence[str] = PACKAGES) -> list[str]:
    """Import packages; returns the ones that cannot be imported, which a task that needs one reports."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "False")
    missing = []
    for package in packages:
        try:
            import_module(package)
        except Exception:
            log.warning("%s cannot be preloaded", package, exc_info=True)
            missing.append(package)
    return missing


class PreloadedExecutor(LocalExecutor):
    """``[core] executor = tidemark_airflow.preloaded_executor.PreloadedExecutor``."""

    def start(self) -> None:
        """Load the packages, then fork the workers."""
        preload()
        super().start()
