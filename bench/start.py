"""How long starting takes: a Spark application with and without its class archive.

Run by ``make bench`` with the services up (``make up``); prints a table for bench/README.md.
"""

import statistics
import tempfile
from pathlib import Path

from submit import submit  # isort: skip
from tidemark.embedded.jars.class_archive import QUICK, driver_java_options, ensure_class_archive
from tidemark.settings import Settings

ROUNDS = 5
APPLICATION = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
assert spark.range(1000).selectExpr("sum(id)").collect()[0][0] == 499500
spark.stop()
"""


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


if __name__ == "__main__":
    main()
