"""Capture against a bare Spark job: the same range of Kafka, 1,000,000 records of 300 bytes, in one run.

Run by ``make bench`` with the services up (``make up``); prints tables for bench/README.md.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from submit import Submitted, submit  # isort: skip
from tidemark.cli.connections import look_up
from tidemark.connections import KafkaConnection
from tidemark.embedded.jars.class_archive import driver_java_options, ensure_class_archive
from tidemark.settings import Settings

PARTITIONS, ROUNDS = 4, 3
RECORDS, FEW = 1_000_000, 100_000
WAYS = ("bare", "captured", "audited")
HERE = Path(__file__).parent


def fill(kafka: KafkaConnection, topic: str, records: int, options: str) -> None:
    """Create a topic with ``records`` records, spread evenly."""
    with KafkaAdminClient(**kafka.client_options()) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1)])
    per_partition = str(records // PARTITIONS)
    submit(HERE / "fill_job.py", kafka.servers, topic, per_partition, str(PARTITIONS), java_options=options)


def run(way: str, kafka: KafkaConnection, topic: str, records: int, options: str) -> Submitted:
    with tempfile.TemporaryDirectory() as folder:
        arguments = (way, kafka.servers, topic, str(records // PARTITIONS), str(PARTITIONS), f"{folder}/out")
        return submit(HERE / "capture_job.py", *arguments, java_options=options)


def main() -> None:
    settings = Settings.read()
    ensure_class_archive(settings)
    # As the operator submits it: from 250,000 messages on, Java's optimising compiler pays off.
    options = driver_java_options(settings, RECORDS)
    kafka = KafkaConnection.from_airflow("kafka_default", look_up("kafka_default"))
    stamp = int(time.time())
    topics = {count: f"bench-capture-{stamp}-{count}" for count in (RECORDS, FEW)}
    try:
        for count, topic in topics.items():
            fill(kafka, topic, count, options)
        found: dict[str, list[Submitted]] = {way: [] for way in WAYS}
        for _ in range(ROUNDS):
            for way in WAYS:
                found[way].append(run(way, kafka, topics[RECORDS], RECORDS, options))
        few = run("captured", kafka, topics[FEW], FEW, options)
    finally:
        with KafkaAdminClient(**kafka.client_options()) as admin:
            admin.delete_topics(list(topics.values()))
    report(found, few)


def report(found: dict[str, list[Submitted]], few: Submitted) -> None:
    work = {way: statistics.median(one.answer["seconds"] for one in runs) for way, runs in found.items()}
    whole = {way: statistics.median(one.seconds for one in runs) for way, runs in found.items()}
    print(f"\n| {RECORDS:,} records of 300 bytes, {PARTITIONS} partitions | work s | records/s | whole s |")
    print("|---|---|---|---|")
    for way in WAYS:
        print(f"| {way} | {work[way]:.1f} | {RECORDS / work[way]:,.0f} | {whole[way]:.1f} |")
    print(f"\ncaptured / bare, throughput of the work: {work['bare'] / work['captured']:.2f}")
    print(f"audited / captured, time of the whole application: {whole['audited'] / whole['captured']:.2f}")
    print(f"audited / captured, time of the work: {work['audited'] / work['captured']:.2f}")
    print("\n| peak memory of the driver, MB | Python | JVM (with its tasks) |\n|---|---|---|")
    for count, one in ((FEW, few), (RECORDS, found["captured"][-1])):
        print(f"| {count:,} records | {one.answer['python']} | {one.answer['jvm']} |")


if __name__ == "__main__":
    sys.exit(main())
