"""The environment of Airflow, computed from settings and state; this process's own is not changed.

It has no secrets: those are in the home's ``airflow.cfg`` (see ``airflow``), readable by its owner only.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from tidemark.embedded.jars.ivy import pyspark_folder
from tidemark.embedded.ports import LOOPBACK
from tidemark.embedded.services.spark_connect import HOST, token_file
from tidemark.embedded.state import SparkMode, State
from tidemark.settings import Settings


def airflow_environment(
    settings: Settings, state: State, environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables to add so that Airflow, its tasks and their Spark applications use this home.

    ``environ`` is the environment they are added to, by default this process's; connections and tuning in it
    stay.
    """
    given = os.environ if environ is None else environ
    ours = {**embedded_connections(settings, state), **_tuning()}
    return {
        **{name: value for name, value in ours.items() if name not in given},
        **_places(settings),
        **_server(settings, state),
        **_programs(settings, state, given),
    }


def embedded_connections(settings: Settings, state: State) -> dict[str, str]:
    """The three connections as Airflow's environment variables."""
    match state.spark:
        case SparkMode.CONNECT:
            # The token is not in the environment: other programs that inherit it have no use for it.
            spark: dict[str, object] = {"host": f"sc://{HOST}", "port": settings.spark_port}
            spark["extra"] = {"token_file": str(token_file(settings))}
        case SparkMode.CLUSTER:
            spark = {"host": f"spark://{LOOPBACK}", "port": state.ports["spark.master"]}
        case SparkMode.LOCAL:
            spark = {"host": "local[2]"}
    connections: dict[str, dict[str, object]] = {
        "KAFKA": {"conn_type": "kafka", "extra": {"bootstrap.servers": f"{LOOPBACK}:{settings.kafka_port}"}},
        "CASSANDRA": {"conn_type": "cassandra", "host": LOOPBACK, "port": settings.cassandra_port},
        "SPARK": {"conn_type": "spark", **spark},
    }
    return {f"AIRFLOW_CONN_{name}_DEFAULT": json.dumps(value) for name, value in connections.items()}


def _tuning() -> dict[str, str]:
    return {
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "True",
        "AIRFLOW__CORE__PARALLELISM": "4",  # forked up front: the default of 32 takes 4 GB
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.3",  # 0.1 would take a fifth of a core
        # A worker may notice only at the next heartbeat that its task has ended; 15 failed ones are as many
        # seconds as the default of 3.
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        "AIRFLOW__WORKERS__MAX_FAILED_HEARTBEATS": "15",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",  # a new file shows up in seconds instead of minutes
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "GX_ANALYTICS_ENABLED": "False",
    }


def _places(settings: Settings) -> dict[str, str]:
    home = settings.home / "airflow"
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(settings.root / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(settings.root / "plugins"),
        # A component waits for a locked database: after SQLite's default of 5 s a trigger would be refused.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}?timeout=60",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        "TIDEMARK_ROOT": str(settings.root),
        "TIDEMARK_HOME": str(settings.home),
        "TIDEMARK_CACHE": str(settings.cache),
        "TIDEMARK_PIPELINES": ":".join(str(folder) for folder in settings.pipeline_folders[1:]),
        "TIDEMARK_TRANSFORMS": ":".join(settings.transform_packages),
        "TIDEMARK_KAFKA_PORT": str(settings.kafka_port),
        "TIDEMARK_CASSANDRA_PORT": str(settings.cassandra_port),
        "TIDEMARK_AIRFLOW_PORT": str(settings.airflow_port),
        "TIDEMARK_SPARK_PORT": str(settings.spark_port),
        "TIDEMARK_OPLOG_PORT": str(settings.oplog_port),
    }


def _server(settings: Settings, state: State) -> dict[str, str]:
    url = f"http://{LOOPBACK}:{settings.airflow_port}"
    simple = "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"
    return {
        "AIRFLOW__CORE__EXECUTOR": "tidemark_airflow.preloaded_executor.PreloadedExecutor",
        "AIRFLOW__CORE__AUTH_MANAGER": simple,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__CORE__HOSTNAME_CALLABLE": "tidemark.embedded.ports.loopback",
        "AIRFLOW__API__HOST": LOOPBACK,
        "AIRFLOW__API__PORT": str(settings.airflow_port),
        "AIRFLOW__API__BASE_URL": url,
        # Without it, tasks call port 8080 regardless of the port above, and fail without a log.
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(state.ports.get("airflow.worker_log", 8793)),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(state.ports.get("airflow.trigger_log", 8794)),
    }


def _programs(settings: Settings, state: State, given: Mapping[str, str]) -> dict[str, str]:
    programs = str(Path(sys.executable).parent)
    path = [programs, *(part for part in given.get("PATH", os.defpath).split(":") if part != programs)]
    root = str(settings.root)
    modules = [root, *(part for part in given.get("PYTHONPATH", "").split(":") if part not in ("", root))]
    return {
        "PATH": ":".join(path),  # for SparkSubmitHook, which runs spark-submit
        "PYTHONPATH": ":".join(modules),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(pyspark_folder()),
        "SPARK_LOCAL_IP": LOOPBACK,
        **({"JAVA_HOME": state.java_home} if state.java_home else {}),
    }
