"""How long starting takes: Spark with and without its class archive, and a run with nothing to do.

Run by ``make bench`` with the services up (``make up``); prints a table for bench/README.md.
"""

import statistics
import tempfile
import time
from pathlib import Path

from submit import submit  # isort: skip
from tidemark.cli.connections import look_up
from tidemark.cli.demo.main import DAG_ID, create_topics, let_dag_run
from tidemark.embedded.jars.class_archive import QUICK, driver_java_options, ensure_class_archive
from tidemark.embedded.services.airflow_api import AirflowApi
from tidemark.pipeline.connections import collect_connections
from tidemark.pipeline.loader import find_pipeline
from tidemark.settings import Settings

ROUNDS = 5
APPLICATION = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
assert spark.range(1000).selectExpr("sum(id)").collect()[0][0] == 499500
spark.stop()
"""


def time_empty_run(api: AirflowApi) -> float:
    """Seconds from start to end of a run that finds nothing new."""
    run_id = api.trigger(DAG_ID)
    while api.run(DAG_ID, run_id)["state"] not in ("success", "failed"):
        time.sleep(0.2)
    return float(api.run(DAG_ID, run_id)["duration"])


def main() -> None:
    settings = Settings.read()
    ensure_class_archive(settings)
    archived = driver_java_options(settings)
    ways = {"as it comes": "-Dnothing=set", "quick compiler": QUICK, "class archive": archived}
    with tempfile.TemporaryDirectory() as folder:
        application = Path(folder, "tiny.py")
        application.write_text(APPLICATION)
        times: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, options in ways.items():
                times[way].append(submit(application, java_options=options).seconds)
    base = statistics.median(times["as it comes"])
    print("| Spark application that does next to nothing | median s | ratio |\n|---|---|---|")
    for way, values in times.items():
        print(f"| {way} | {statistics.median(values):.1f} | {statistics.median(values) / base:.2f} |")

    pipeline = find_pipeline("orders")
    create_topics(pipeline, collect_connections(pipeline, look_up))
    with AirflowApi(settings) as api:
        let_dag_run(api)
        time_empty_run(api)
        runs = [time_empty_run(api) for _ in range(ROUNDS)]
    print("\n| `orders.replicate` with nothing new | s |\n|---|---|")
    print(f"| median of {ROUNDS} | {statistics.median(runs):.1f} |\n| slowest | {max(runs):.1f} |")


if __name__ == "__main__":
    main()
