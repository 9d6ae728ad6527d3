"""Spark's standalone cluster of one master and two workers with one core each: used in cluster mode only."""

import json
import os
import sys
import urllib.request

from tidemark.embedded.files import filled, write_atomically
from tidemark.embedded.jars.ivy import pyspark_folder
from tidemark.embedded.java import Java
from tidemark.embedded.ports import LOOPBACK
from tidemark.embedded.services.service import Program, Service
from tidemark.embedded.state import State
from tidemark.settings import Settings

WORKERS = 2
INTERNAL_PORTS = (
    *("spark.master", "spark.master_ui"),
    *(f"spark.worker_{number}{kind}" for number in range(1, WORKERS + 1) for kind in ("", "_ui")),
)
WORKER_MEMORY = "2g"


def spark_cluster_service(settings: Settings, state: State, java: Java) -> Service:
    """The cluster of this home, ready to be started."""
    folder, ports = settings.home / "spark", state.ports
    logging = folder / "log4j2.properties"
    url = f"spark://{LOOPBACK}:{ports['spark.master']}"
    environ = {
        **os.environ,
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(pyspark_folder()),
        "SPARK_SCALA_VERSION": "2.13",  # normally set by spark-class; workers need it to start executors
        "SPARK_LOCAL_IP": LOOPBACK,
        "PYSPARK_PYTHON": sys.executable,
    }
    runner = (
        *(
            str(java.path),
            "-Xmx512m",
            "-XX:+UseSerialGC",
            "-XX:-UsePerfData",
            "-Djava.net.preferIPv4Stack=true",
        ),
        *(f"-Dlog4j2.configurationFile={logging.as_uri()}", "--add-opens=java.base/java.lang=ALL-UNNAMED"),
        *("--add-opens=java.base/sun.nio.ch=ALL-UNNAMED", "--add-opens=java.base/java.nio=ALL-UNNAMED"),
        *("-cp", str(pyspark_folder() / "jars" / "*")),
    )

    def prepare() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(logging, filled("spark-log4j2.properties"))

    def program(name: str, title: str, main: str, port: str, *more: str) -> Program:
        where = ("--host", LOOPBACK, "--port", str(ports[port]), "--webui-port", str(ports[f"{port}_ui"]))
        command = (*runner, f"org.apache.spark.deploy.{main}", *where, *more)
        return Program(name, title, command, environ, settings.home, ports[port])

    master = program("spark-master", "Spark's master", "master.Master", "spark.master")
    workers = (
        program(
            *(
                f"spark-worker-{number}",
                f"Spark's worker {number}",
                "worker.Worker",
                f"spark.worker_{number}",
            ),
            *("--cores", "1", "--memory", WORKER_MEMORY, "--work-dir", str(folder / f"worker-{number}")),
            url,
        )
        for number in range(1, WORKERS + 1)
    )
    return Service(
        name="cluster",
        title="Spark's cluster",
        programs=(master, *workers),
        prepare=prepare,
        question=lambda _: ask_cluster(ports["spark.master_ui"]),
        deadline=90.0,
        address=url,
    )


def ask_cluster(port: int) -> str | None:
    """Request the master's workers; None when all are alive, else how many are."""
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/json/", timeout=5) as answer:
            report = json.load(answer)
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    alive = sum(worker["state"] == "ALIVE" for worker in report["workers"])
    return None if alive >= WORKERS else f"{alive} of {WORKERS} workers are alive"
