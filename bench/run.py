"""Whole runs of ``orders.replicate`` on the services of ``make up``: without new records, and with 1,000.

On the engine that stays up, then with a Spark application per task (Airflow is restarted for that, and again
afterwards); then ``make demo``: once more on these services, and for the first time in an empty home of its
own. Run by ``make bench`` with the services up; prints tables for bench/README.md.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tidemark.cli.connections import look_up
from tidemark.cli.demo.main import DAG_ID, create_topics, let_dags_run, send_actions
from tidemark.cli.demo.orders import sample_actions
from tidemark.clock import wall_clock_millis
from tidemark.connections import Connections
from tidemark.embedded.lifecycle import up
from tidemark.embedded.ports import free_port
from tidemark.embedded.services.airflow_api import AirflowApi
from tidemark.embedded.state import SparkMode, State
from tidemark.pipeline.connections import collect_connections
from tidemark.pipeline.loader import find_pipeline
from tidemark.settings import Settings

RECORDS = 1000
NAMES = {SparkMode.CONNECT: "engine that stays up", SparkMode.LOCAL: "application per task"}


@dataclass(frozen=True)
class Runs:
    """Seconds from the start to the end of runs, as Airflow records them."""

    empty: list[float]
    filled: list[float]


def time_run(api: AirflowApi, connections: Connections, records: int) -> float:
    """Seconds of one run with so many new records."""
    if records:
        now = wall_clock_millis()
        send_actions(connections.kafka, "orders", sample_actions(records, batch=now, now=now))
    run_id = api.trigger(DAG_ID)
    while (run := api.run(DAG_ID, run_id))["state"] not in ("success", "failed"):
        time.sleep(0.2)
    if run["state"] == "failed":
        sys.exit(f"{run_id} failed: see the log of its tasks")
    let_dags_run(api, DAG_ID)
    return float(run["duration"])


def time_runs(settings: Settings, rounds: int) -> Runs:
    """Empty and filled runs in turns; the first of each is not counted."""
    pipeline = find_pipeline("orders")
    connections = collect_connections(pipeline, look_up)
    create_topics(pipeline, connections)
    with AirflowApi(settings) as api:
        let_dags_run(api, DAG_ID)
        taken = [
            (time_run(api, connections, RECORDS), time_run(api, connections, 0)) for _ in range(rounds + 1)
        ]
    return Runs(empty=[empty for _, empty in taken[1:]], filled=[filled for filled, _ in taken[1:]])


@contextmanager
def engine(settings: Settings, mode: SparkMode) -> Iterator[None]:
    """The services with this engine; afterwards with the one they had."""
    before = State.read(settings).spark
    up(settings, spark_mode=mode)
    try:
        yield
    finally:
        up(settings, spark_mode=before)


def time_demo(environ: dict[str, str]) -> float:
    """Seconds of ``make demo``, with everything installed."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "tidemark.cli.demo.main"],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"make demo failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return time.monotonic() - began


def time_first_demo() -> float:
    """Seconds of the first ``make demo`` of an installation: jars are there, its home is empty."""
    with tempfile.TemporaryDirectory() as folder:
        ports: dict[str, int] = {}
        for service in ("KAFKA", "CASSANDRA", "AIRFLOW", "SPARK"):
            ports[f"TIDEMARK_{service}_PORT"] = free_port(set(ports.values()))
        environ = {"TIDEMARK_HOME": f"{folder}/home", **{name: str(port) for name, port in ports.items()}}
        try:
            return time_demo(environ)
        finally:
            command = [sys.executable, "-m", "tidemark.cli.main", "services", "down"]
            subprocess.run(command, env={**os.environ, **environ}, capture_output=True, check=True)


def show_runs(measured: dict[SparkMode, Runs]) -> None:
    print(f"| `orders.replicate` | empty, median s | {RECORDS:,} records, median s | slowest | ratio |")
    print("|---|---|---|---|---|")
    for mode, runs in measured.items():
        empty, filled = statistics.median(runs.empty), statistics.median(runs.filled)
        print(
            f"| {NAMES[mode]} | {empty:.1f} | {filled:.1f} | {max(runs.filled):.1f} | {filled / empty:.1f} |"
        )
    if len(measured) > 1:
        medians = {mode: statistics.median(runs.filled) for mode, runs in measured.items()}
        times = medians[SparkMode.LOCAL] / medians[SparkMode.CONNECT]
        print(f"\nThe engine that stays up is {times:.1f} times as fast as an application per task.")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each kind on the engine that stays up")
    parser.add_argument("--slow-rounds", type=int, default=2, help="with an application per task; 0: none")
    parser.add_argument("--no-demo", action="store_true", help="measure runs only")
    arguments = parser.parse_args(argv)
    settings, measured = Settings.read(), dict[SparkMode, Runs]()
    rounds = {SparkMode.LOCAL: arguments.slow_rounds, SparkMode.CONNECT: arguments.rounds}
    for mode, number in rounds.items():
        if number:
            with engine(settings, mode):
                measured[mode] = time_runs(settings, number)
    show_runs(measured)
    if not arguments.no_demo:
        print("\n| `make demo` | s |\n|---|---|")
        print(f"| once more, on running services | {time_demo({}):.0f} |")
        print(f"| the first time, in an empty home | {time_first_demo():.0f} |")


if __name__ == "__main__":
    main()
