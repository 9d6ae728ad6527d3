"""Reading a journal: ``Journal.read`` beside the bare Cassandra query, what the tail costs, and memory.

Run by ``make bench``. Starts Kafka and Cassandra of its own, and prints tables for bench/README.md.
"""

import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from journal_load import Load, fill_topic  # isort: skip
from services import own_services  # isort: skip
from tidemark import Journal
from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection, KafkaConnection
from tidemark.journal.codec.record import read_action
from tidemark.journal.effect import Message
from tidemark.journal.fold import Fold
from tidemark.journal_tables.schema.create import create_journal
from tidemark.journal_tables.statements import JournalTables
from tidemark.pipeline.model import JournalDeclaration

KEY, KEYSPACE, ROUNDS = "order-000000", "journal", 21
SMALL, LARGE = Load(1_000, 1, 1), Load(100_000, 1, 1)
TAILS = (1_000, 10_000, 100_000)


def replicate(cassandra: CassandraConnection, topic: str, load: Load) -> None:
    """A load of one entity into the tables, by the fold and the writer's own statements."""
    declared = JournalDeclaration.model_validate(
        {"name": "journal", "kind": "journal", "keyspace": KEYSPACE}, context={}
    )
    create_journal(connect(cassandra), "bench", declared)
    tables, fold = JournalTables.of(connect(cassandra), declared), Fold(topic, KEY, None)
    for offset, (key, header, value) in enumerate(load.of_partition(0)):
        action = read_action(key, value, 1_794_000_000_000 + offset, 0, [("journal.action", header)])
        fold.apply(Message(offset, 0, offset, 10**15 + offset, 10**15, action))
    effect = fold.effect()
    with tables.bulk() as bulk:
        tables.add_rows(bulk, tables.encode_rows(effect.rows))
        bulk.flush()
        tables.add_head(bulk, topic, KEY, effect.head, effect.write_time)
    tables.write_pointers({(topic, 0): (load.appends - 1, effect.write_time)}, 10**15)


def bare_query(cassandra: CassandraConnection, topic: str, page: int) -> Callable[[], Iterable[object]]:
    """The rows of the entity's only segment, as the driver gives them."""
    session = connect(cassandra)
    select = session.prepare(f"SELECT * FROM {KEYSPACE}.journal WHERE id = ? AND topic = ? AND segment = 0")
    select.fetch_size = page
    return lambda: session.execute(select, (KEY, topic))


def timed(read: Callable[[], Iterable[object]], expected: int) -> tuple[float, float]:
    """Milliseconds to the first and to the last event."""
    began, first, count = time.perf_counter(), 0.0, 0
    for _ in read():
        count += 1
        if count == 1:
            first = time.perf_counter() - began
    last = time.perf_counter() - began
    assert count == expected, (count, expected)
    return first * 1000, last * 1000


def measure_read(kafka: KafkaConnection, cassandra: CassandraConnection) -> None:
    topic = "small"
    fill_topic(kafka, SMALL, topic)
    replicate(cassandra, topic, SMALL)
    rows = []
    with Journal(topic, kafka=kafka, cassandra=cassandra, keyspace=KEYSPACE) as journal:
        ways = {
            "bare query, one page": bare_query(cassandra, topic, 5_000),
            "bare query, pages of 500": bare_query(cassandra, topic, 500),
            "`Journal.read`, nothing in the tail": partial(journal.read, KEY),
        }
        for read in ways.values():
            for _ in range(ROUNDS):  # warm-up: until Java has compiled the hot code
                timed(read, SMALL.appends)
        found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, read in ways.items():
                found[way].append(timed(read, SMALL.appends))
        rows += [(way, *medians(of)) for way, of in found.items()]
        sent = SMALL.appends
        others = Load(0, 100, 1, prefix="other")
        for tail in TAILS:
            # Appends of other entities, with growing numbers, so that the topic is not re-created.
            fill_topic(kafka, replace(others, first=sent, appends=tail - (sent - SMALL.appends)), topic)
            sent = SMALL.appends + tail
            found_ways = sorted(tail_reads(kafka, cassandra), key=lambda one: not one[0].startswith("bare"))
            rows += [(f"{way}, {tail:,} records in the tail", *of) for way, of in found_ways]
    bare = rows[0][2]
    print("\n| 1,000 events of 200 bytes | first event ms | last event ms | last, against bare |")
    print("|---|---|---|---|")
    for way, first, last in rows:
        bare = last if way.startswith("bare query, one page") else bare
        print(f"| {way} | {first:.1f} | {last:.1f} | {last / bare:.2f} |")


def tail_reads(
    kafka: KafkaConnection, cassandra: CassandraConnection
) -> Iterator[tuple[str, tuple[float, float]]]:
    """Reads of a journal whose tail has records of others: without a cache, and with one."""
    ends: dict[str, Any] = {"kafka": kafka, "cassandra": cassandra, "keyspace": KEYSPACE}
    with Journal("small", cache_bytes=0, **ends) as journal:
        journal.mark(KEY)
        every = [timed(partial(journal.read, KEY), SMALL.appends) for _ in range(ROUNDS // 3)]
        yield "every read, without a cache", medians(every)
    firsts = []
    for _ in range(3):
        with Journal("small", **ends) as journal:
            journal.mark(KEY)
            firsts.append(timed(partial(journal.read, KEY), SMALL.appends))
    yield "first read", medians(firsts)
    with Journal("small", **ends) as journal:
        list(journal.read(KEY))
        bare, second = [], []
        for _ in range(ROUNDS):  # in turn, so that both meet the same disturbances
            bare.append(timed(bare_query(cassandra, "small", 5_000), SMALL.appends))
            second.append(timed(partial(journal.read, KEY), SMALL.appends))
        yield "bare query, one page", medians(bare)
        yield "second read", medians(second)
        other = "other-000007"
        events = sum(1 for _ in journal.read(other))
        of_other = [timed(partial(journal.read, other), events) for _ in range(ROUNDS)]
        yield f"read of another entity, {events:,} events that are all in the tail", medians(of_other)
        held = journal.cache_info()
        print(
            f"\ncache: {held.records:,} records, {held.bytes / 2**20:.1f} MiB, {held.hits} hits, "
            f"{held.misses} misses; {cache_memory(journal):.1f} MiB as Python counts them"
        )


def cache_memory(journal: Journal) -> float:
    """MiB that Python allocates while the emptied cache is filled again."""
    tracemalloc.start()
    journal._tail._cache.clear()
    list(journal.read(KEY))
    found = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    return found


def measure_parts(kafka: KafkaConnection, cassandra: CassandraConnection) -> None:
    """The steps of a read before its first row, one by one."""
    with Journal("small", kafka=kafka, cassandra=cassandra, keyspace=KEYSPACE) as journal:
        journal.pointer(KEY)
        tables = journal._reader._tables
        parts = {
            "mark": partial(journal.mark, KEY),
            "pointer of the partition": partial(tables.pointer, KEY, 0),
            "head": lambda: tables.ask_head(KEY)(),
        }
        print("\n| before the first row | ms |\n|---|---|")
        for part, ask in parts.items():
            print(f"| {part} | {statistics.median(took(ask) for _ in range(ROUNDS)):.2f} |")


def took(ask: Callable[[], object]) -> float:
    began = time.perf_counter()
    ask()
    return (time.perf_counter() - began) * 1000


def medians(found: list[tuple[float, float]]) -> tuple[float, float]:
    firsts, lasts = zip(*found, strict=True)
    return statistics.median(firsts), statistics.median(lasts)


def measure_memory(kafka: KafkaConnection, cassandra: CassandraConnection) -> None:
    """Peaks of processes that read one entity, from Cassandra and from Kafka."""
    for topic, load in (("rows-small", SMALL), ("rows-large", LARGE)):
        fill_topic(kafka, load, topic)
        replicate(cassandra, topic, load)
    for topic, load in (("tail-small", SMALL), ("tail-large", LARGE)):
        fill_topic(kafka, load, topic)
    print("\n| one entity read, peak of the process, MB | 1,000 events | 100,000 events | ratio | events/s |")
    print("|---|---|---|---|---|")
    for place in ("rows", "tail"):
        name = {"rows": "all in Cassandra", "tail": "all in Kafka's tail"}[place]
        (small, _), (large, seconds) = (
            read_apart(kafka, cassandra, f"{place}-{size}") for size in ("small", "large")
        )
        rate = LARGE.appends / seconds
        print(f"| {name} | {small:.0f} | {large:.0f} | {large / small:.2f} | {rate:,.0f} |")


def read_apart(kafka: KafkaConnection, cassandra: CassandraConnection, topic: str) -> tuple[float, float]:
    """Peak memory in MB and seconds of a read in its own process."""
    command = [sys.executable, __file__, "peak", kafka.servers, str(cassandra.port), topic]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak, seconds = done.stdout.split()
    return float(peak), float(seconds)


def peak(servers: str, port: str, topic: str) -> None:
    """Read an entity to its end, without keeping its events."""
    kafka, cassandra = (
        KafkaConnection(servers=servers),
        CassandraConnection(hosts=("127.0.0.1",), port=int(port)),
    )
    with Journal(topic, kafka=kafka, cassandra=cassandra, keyspace=KEYSPACE) as journal:
        began = time.perf_counter()
        count = sum(1 for _ in journal.read(KEY))
        seconds = time.perf_counter() - began
    assert count == (LARGE if topic.endswith("large") else SMALL).appends
    # Not ``ru_maxrss``, which a process inherits from the one that started it.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(int(status["VmHWM"].split()[0]) / 1024, seconds)


def main() -> None:
    with own_services() as own:
        measure_read(own.kafka, own.cassandra)
        measure_parts(own.kafka, own.cassandra)
        measure_memory(own.kafka, own.cassandra)


if __name__ == "__main__":
    if sys.argv[1:2] == ["peak"]:
        peak(*sys.argv[2:])
    else:
        main()
