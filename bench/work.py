"""The work journal against bare lightweight transactions from the same process, side by side in one run.

Run by ``make bench``. Starts a Cassandra of its own. ``--entries`` through one bucket by one client with some
threads, then ``--contended`` entries by 16 workers, each executed once.
"""

import argparse
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from services import own_services  # isort: skip
from cassandra import ConsistencyLevel

from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection
from tidemark.work.client import Work
from tidemark.work.declaration import WorkDeclaration

THREADS, WORKERS, AT_ONCE = 8, 16, 20
PAYLOAD = {"data": "x" * 100}


def declared(name: str) -> WorkDeclaration:
    # A bucket that does not end within the measurement.
    return WorkDeclaration.model_validate(
        {"name": name, "key": {"k": "text"}, "payload": {"data": "text"}, "bucket": "month"}
    )


@contextmanager
def timed(rates: dict[str, float], what: str, count: int) -> Iterator[None]:
    began = time.monotonic()
    yield
    rates[what] = count / (time.monotonic() - began)
    print(f"{what}: {rates[what]:,.0f}/s", flush=True)


def spread(count: int, act: Callable[[int], object], threads: int = THREADS) -> None:
    """Call ``act`` with every number, from some threads."""
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda part: [act(n) for n in range(part, count, threads)], range(threads)):
            pass


def bare_transactions(session: Any, count: int) -> Callable[[int], object]:
    """The same number of single conditional inserts of rows of the same size."""
    session.execute(
        "CREATE TABLE IF NOT EXISTS work.bare (kind text, name text, row text, version bigint static, "
        "last_tx uuid static, body text, PRIMARY KEY ((kind, name), row))"
    )
    statement = session.prepare(
        "INSERT INTO work.bare (kind, name, row, body) VALUES ('entry', ?, ?, ?) IF NOT EXISTS"
    )
    statement.serial_consistency_level = ConsistencyLevel.SERIAL
    run, body = uuid4().hex, "x" * 600
    return lambda n: session.execute(statement, (f"{run}/{n}", str(n), body))


def drain(work: Work, threads: int, seen: Counter[str], latencies: list[float]) -> None:
    """Claim and end everything, from some threads."""
    lock = threading.Lock()

    def run(_: int) -> None:
        while True:
            began = time.monotonic()
            items = work.claim(AT_ONCE)
            took = time.monotonic() - began
            if not items:
                return
            for item in items:
                work.done(item)
            with lock:
                latencies.append(took)
                seen.update(item.key for item in items)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, range(threads)))


def tombstones(session: Any, name: str) -> int:
    """What Cassandra says that the read of a claim scans in ``due`` after everything went through it."""
    bucket = time.strftime("%Y-%m", time.gmtime())
    query = (
        "SELECT hint_id, key FROM work.due WHERE journal = %s AND bucket = %s AND shard = 0 "
        "AND priority = 180 AND due_at <= %s LIMIT 500"
    )
    result = session.execute(query, (name, bucket, int(time.time() * 1000)), trace=True)
    events = [event.description for event in result.get_query_trace(max_wait_sec=30).events]
    return sum(int(text.split(" and ")[1].split()[0]) for text in events if "tombstone cells" in text)


def one_bucket(cassandra: CassandraConnection, count: int) -> None:
    session = connect(cassandra)
    work, _ = Work.create(declared("bucket"), cassandra=cassandra)
    rates: dict[str, float] = {}
    bare = bare_transactions(session, count)
    with timed(rates, "bare transactions", count):
        spread(count, bare)
    with timed(rates, "insert", count):
        spread(count, lambda n: work.insert(f"k{n}", PAYLOAD))
    seen: Counter[str] = Counter()
    with timed(rates, "claim and done", count):
        drain(work, THREADS, seen, [])
    assert len(seen) == count, f"{len(seen)} of {count} came out"
    alone = rates["bare transactions"]
    print(f"\n| {count:,} entries, one bucket | a second | of bare transactions |\n|---|---|---|")
    for what, rate in rates.items():
        print(f"| {what} | {rate:,.0f} | {rate / alone:.2f} |")
    print(f"\nTombstones that the read of a claim scans in due: {tombstones(session, 'bucket')}")


def contended(cassandra: CassandraConnection, count: int) -> None:
    work, _ = Work.create(declared("contended"), cassandra=cassandra)
    spread(count, lambda n: work.insert(f"k{n}", PAYLOAD))
    seen: Counter[str] = Counter()
    latencies: list[float] = []
    rates: dict[str, float] = {}
    with timed(rates, "claim and done", count):
        drain(work, WORKERS, seen, latencies)
    assert set(seen.values()) == {1}, "something was executed twice"
    assert len(seen) == count, f"{len(seen)} of {count} came out"
    quantiles = statistics.quantiles(latencies, n=100)
    rate, p50, p99 = rates["claim and done"], quantiles[49] * 1000, quantiles[98] * 1000
    print(f"\n{count:,} entries, {WORKERS} workers: each executed once, {rate:,.0f} a second;")
    print(f"a claim of {AT_ONCE} took {p50:.0f} ms (p50), {p99:.0f} ms (p99)")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--contended", type=int, default=10_000)
    arguments = parser.parse_args(argv)
    with own_services() as own:
        one_bucket(own.cassandra, arguments.entries)
        contended(own.cassandra, arguments.contended)


if __name__ == "__main__":
    main()
