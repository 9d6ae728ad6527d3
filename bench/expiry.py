"""Expiry: finding 10,000 expired entities among 100,000 and among 1,000,000, and purging more and more.

Run by ``make bench``. Starts Kafka and Cassandra of its own and prints tables for bench/README.md. Purging
is everything between the plan and the last acknowledgement: last looks, records of what is intended, sending.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from itertools import islice
from pathlib import Path

from cassandra.concurrent import execute_concurrent_with_args
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from services import Own, own_services  # isort: skip
from submit import submit  # isort: skip
from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.purge import open_run
from tidemark.cassandra.session import connect
from tidemark.connections import Connections
from tidemark.consensus.control_plane import open_control
from tidemark.embedded.jars.class_archive import driver_java_options
from tidemark.expiry.heads import JournalHeads, find_expired
from tidemark.journal.head import Head
from tidemark.journal.segments import HEAD_SEGMENTS, head_segments
from tidemark.journal_tables import cells as journal_cells
from tidemark.journal_tables.schema.create import create_journal
from tidemark.journal_tables.statements import JournalTables
from tidemark.pipeline.loader import find_pipeline
from tidemark.pipeline.model import JournalDeclaration
from tidemark.settings import ROOT
from tidemark.writers.journal.writer import JournalWriter

EXPIRED = 10_000
UNIVERSES = {"few": 100_000, "many": 1_000_000}
"""Keyspaces, and how many entities they have."""
PURGED = (2_500, 5_000, 10_000)
DAY, OTHERS = date(2026, 11, 1), 60
"""The day in question, and on how many later ones the other entities expire."""
PIPELINE = f"""
name: bench
source:
  kafka: {{{{topics: [found, {", ".join(f"purged-{number}" for number in PURGED)}]}}}}
schedule: null
log: {{{{path: "{{folder}}/log"}}}}
writers:
  - {{{{name: cassandra, kind: journal, keyspace: many}}}}
expiry: {{{{schedule: null}}}}
"""


def heads_of(topic: str, count: int, day: Callable[[int], date]) -> Iterator[bytes]:
    """Heads of ``count`` entities, as the writer encodes them."""
    for number in range(count):
        key = f"entity-{number:07d}"
        expires = day(number)
        place = (head_segments(key)[0], 0, 0, 10_000, 3, None, 1_794_000_000_000, 1_794_000_000_000)
        head = Head(*place, 86_400_000_000_000, expires)
        yield journal_cells.head_cells(topic, key, head, 10**15 + number)


def fill(own: Own, keyspace: str, entities: int) -> JournalWriter:
    """One expired entity in so many that all together are EXPIRED; the others later, spread over days."""
    declared = JournalDeclaration.model_validate(
        {"name": "cassandra", "kind": "journal", "keyspace": keyspace}, context={}
    )
    session = connect(own.cassandra)
    create_journal(session, "bench", declared)
    tables, every = JournalTables.of(session, declared), entities // EXPIRED
    began = time.monotonic()
    with tables.bulk() as bulk:
        for cells in heads_of(
            "found",
            entities,
            lambda number: DAY if number % every == 0 else DAY + timedelta(days=1 + number % OTHERS),
        ):
            bulk.add(tables._insert_head, cells)
    print(f"filled {keyspace}: {entities:,} heads in {time.monotonic() - began:.0f} s", flush=True)
    return JournalWriter("bench", declared, own.cassandra, "UTC")


def add_purgeable(own: Own, journal: JournalWriter) -> None:
    """A topic for every size; its entities all expired on one day, a different day per topic."""
    with KafkaAdminClient(**own.kafka.client_options()) as admin:
        admin.create_topics([NewTopic(f"purged-{number}", 1, 1) for number in PURGED])
    tables = JournalTables.of(connect(own.cassandra), journal.declared)
    with tables.bulk() as bulk:
        for number in PURGED:
            for cells in heads_of(f"purged-{number}", number, lambda _, number=number: purge_day(number)):
                bulk.add(tables._insert_head, cells)


def purge_day(number: int) -> date:
    return DAY - timedelta(days=1 + PURGED.index(number))


def find_through_index(journal: JournalWriter) -> int:
    return sum(1 for _ in find_expired(JournalHeads(journal), [DAY], lambda topic: topic == "found"))


def find_by_segment(journal: JournalWriter) -> int:
    """As kafka-journal does it: one query per segment, here 64 concurrently."""
    session = connect(journal.connection)
    statement = session.prepare(
        f"SELECT id FROM {journal.declared.keyspace}.metajournal "
        "WHERE topic = ? AND segment = ? AND expire_on = ?"
    )
    arguments = [("found", segment, DAY) for segment in range(HEAD_SEGMENTS)]
    done = execute_concurrent_with_args(session, statement, arguments, concurrency=64)
    return sum(len(list(rows)) for _, rows in done)


def timed(work: Callable[[JournalWriter], int], journal: JournalWriter) -> float:
    began = time.monotonic()
    found = work(journal)
    assert found == EXPIRED, found
    return time.monotonic() - began


def measure_finding(own: Own, journals: dict[str, JournalWriter]) -> None:
    """In turns, so that other load on the machine affects both alike."""
    ways = {"through the index": (find_through_index, 7), "by segment": (find_by_segment, 3)}
    print(f"\n| finding {EXPIRED:,} expired | of 100,000 | of 1,000,000 | ratio |\n|---|---|---|---|")
    for name, (way, rounds) in ways.items():
        for journal in journals.values():
            way(journal)  # warm-up
        times = [{key: timed(way, one) for key, one in journals.items()} for _ in range(rounds)]
        few, many = (statistics.median(one[key] for one in times) for key in journals)
        print(f"| {name} | {few:.2f} s | {many:.2f} s | {many / few:.2f} |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        connections = Path(folder, "connections.json")
        known(own).write(connections)
        arguments = ["--pipeline", "bench", "--connections", str(connections), "--writer", "cassandra"]
        arguments += ["--run", "bench", "--days", str(DAY), "--ceiling", str(EXPIRED), "--look", "--summary"]
        options = driver_java_options(own.settings)
        done = submit(ROOT / "spark_apps" / "find_expired.py", *arguments, java_options=options)
    assert done.answer["total"] == EXPIRED, done.answer
    print(f"| with Spark, `find_expired` from start to end | | {done.seconds:.1f} s | |", flush=True)


def measure_purging(own: Own) -> None:
    """Purge each size in its own run."""
    opened = OpenPipeline(find_pipeline("bench"), known(own))
    print("\n| purged | s | entities/s | ms an entity |\n|---|---|---|---|")
    for number in PURGED:
        days = [purge_day(number)]
        run = open_run(opened, "cassandra", f"bench-{number}")
        run.plan(days, run.find(days), number)
        began = time.monotonic()
        done = run.purge()
        seconds = time.monotonic() - began
        assert len(done.sent) == number, (len(done.sent), list(islice(done.spared, 3)))
        each = 1000 * seconds / number
        print(f"| {number:,} | {seconds:.2f} | {number / seconds:,.0f} | {each:.3f} |", flush=True)


def known(own: Own) -> Connections:
    return Connections(kafka=own.kafka, cassandra={"cassandra_default": own.cassandra})


def main() -> None:
    with own_services(PIPELINE) as own:
        open_control(known(own))
        journals = {keyspace: fill(own, keyspace, count) for keyspace, count in UNIVERSES.items()}
        writer = journals["many"]
        OpenPipeline(find_pipeline("bench"), known(own)).positions.register("cassandra", writer.shape)
        measure_finding(own, journals)
        add_purgeable(own, writer)
        measure_purging(own)


if __name__ == "__main__":
    sys.exit(main())
