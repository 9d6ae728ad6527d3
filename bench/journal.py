"""Journal replication: deliver against its ceiling, and the usual hand-written consumer.

Run by ``make bench``. Starts Kafka and Cassandra of its own, so that nothing else is on them, and
prints tables for bench/README.md. With arguments only these parts: deliver, hot, memory,
consumer. Whole runs are measured by ``bench/whole_run.py``.
"""

import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import journal_ceiling  # isort: skip
import journal_consumer  # isort: skip
from journal_load import TOPIC, Load, fill_topic, make_log  # isort: skip
from services import own_services  # isort: skip
from submit import submit  # isort: skip
from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection
from tidemark.embedded.jars.class_archive import driver_java_options
from tidemark.embedded.ports import LOOPBACK
from tidemark.settings import Settings

HERE = Path(__file__).parent
ROUND_ROBIN, HOT = Load(), Load(entities=100)
CONSUMED = 200_000
MOST_ROUNDS = 8
STEADY = 1.03
"""The warm-up ends when a round is not faster than the best one by this factor."""


def warm_up(settings: Settings) -> None:
    """Write until the server's throughput stops rising: Java compiles hot code in the background.

    Before that, a row takes two to three times as long.
    """
    rates = [0.0]
    while len(rates) <= MOST_ROUNDS and (len(rates) < 3 or rates[-1] > STEADY * max(rates[:-1])):
        rates.append(journal_ceiling.measure(ROUND_ROBIN, "warm", settings.cassandra_port))
    print("warming up, rows/s:", ", ".join(f"{rate:,.0f}" for rate in rates[1:]))


def measure_deliver(settings: Settings, load: Load, title: str) -> None:
    """Deliver two bindings of the load; the second finds the heads of the first."""
    port = settings.cassandra_port
    before = journal_ceiling.measure(load, "ceiling", port)
    with tempfile.TemporaryDirectory() as folder:
        times = (2 * 10**15, 2 * 10**15 + 10**10)
        bindings = [
            make_log(folder, replace(load, first=number * load.appends), t) for number, t in enumerate(times)
        ]
        options = driver_java_options(settings, load.appends)
        texts = json.dumps([binding.to_json() for binding in bindings])
        arguments = (folder, "delivered", str(port), texts)
        done = submit(HERE / "journal_job.py", *arguments, java_options=options).answer
    _session(settings).execute("DROP KEYSPACE delivered")
    after = journal_ceiling.measure(load, "ceiling", port)
    ceiling = statistics.mean((before, after))
    rates = [load.appends / seconds for seconds in done["seconds"]]
    print(f"\n| {title} | records/s | of the ceiling |\n|---|---|---|")
    print(f"| ceiling, before and after | {before:,.0f} and {after:,.0f} | |")
    for name, rate in zip(("new entities", "known entities"), rates, strict=True):
        print(f"| deliver, {name} | {rate:,.0f} | {rate / ceiling:.2f} |")
    print(f"\npeak of a Python worker, {title}: {done['peak'] / 2**20:.0f} MB")


def measure_memory(settings: Settings) -> None:
    """The same number of entities, a tenth of the records."""
    peaks = []
    for load in (
        replace(ROUND_ROBIN, appends=100_000, entities=10_000),
        replace(ROUND_ROBIN, entities=10_000),
    ):
        with tempfile.TemporaryDirectory() as folder:
            binding = make_log(folder, load, 2 * 10**15)
            arguments = (folder, "memory", str(settings.cassandra_port), json.dumps([binding.to_json()]))
            options = driver_java_options(settings, load.appends)
            peaks.append(submit(HERE / "journal_job.py", *arguments, java_options=options).answer["peak"])
        _session(settings).execute("DROP KEYSPACE memory")
    small, large = (peak / 2**20 for peak in peaks)
    print(f"\npeak of a Python worker: {small:.0f} MB for 100,000 records, {large:.0f} MB for 1,000,000")
    print(f"ten times the records: {large / small:.2f} x the memory")


def _session(settings: Settings):
    return connect(CassandraConnection(hosts=(LOOPBACK,), port=settings.cassandra_port))


def main(parts: Sequence[str]) -> None:
    with own_services() as own:
        settings = own.settings
        warm_up(settings)
        if "deliver" in parts:
            measure_deliver(settings, ROUND_ROBIN, "1,000,000 appends, 100,000 entities")
        if "hot" in parts:
            measure_deliver(settings, HOT, "1,000,000 appends, 100 entities")
        if "memory" in parts:
            measure_memory(settings)
        if "consumer" in parts:
            fill_topic(own.kafka, ROUND_ROBIN)
            by_hand = journal_consumer.measure(own.kafka, own.cassandra, TOPIC, CONSUMED)
            print(f"\nhand-written consumer: {by_hand:,.0f} records/s")


if __name__ == "__main__":
    main(sys.argv[1:] or ("deliver", "hot", "memory", "consumer"))
