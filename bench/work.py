"""The work journal against bare lightweight transactions from the same process, side by side in one run.

Run by ``make bench``. Starts a Cassandra of its own and warms it up. ``--entries`` through one bucket by one
client with some threads, between two halves of as many bare transactions; then ``--contended`` entries by 16
workers, each executed once.
"""

import argparse
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from services import own_services  # isort: skip
from cassandra import ConsistencyLevel

from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection
from tidemark.work.client import Work
from tidemark.work.model.declaration import WorkDeclaration
from tidemark.work.queue.due_queue import PAGE
from tidemark.work.store.due import BEGINNING

THREADS, WORKERS, AT_ONCE = 8, 16, 20
PAYLOAD = {"data": "x" * 100}


def declared(name: str) -> WorkDeclaration:
    # A bucket that does not end within the measurement.
    return WorkDeclaration.model_validate(
        {"name": name, "key": {"k": "text"}, "payload": {"data": "text"}, "bucket": "month"}
    )


@dataclass
class Timed:
    """A number of operations and their total time, in one measurement or several."""

    what: str
    count: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        return self.count / self.seconds

    @contextmanager
    def go(self, count: int) -> Iterator[None]:
        began = time.monotonic()
        yield
        took = time.monotonic() - began
        self.count, self.seconds = self.count + count, self.seconds + took
        print(f"{self.what}: {count:,} in {took:.1f} s, {count / took:,.0f} a second", flush=True)


def spread(count: int, act: Callable[[int], object], threads: int = THREADS) -> None:
    """Call ``act`` with every number below ``count``, from several threads."""
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda part: [act(n) for n in range(part, count, threads)], range(threads)):
            pass


def bare_transactions(session: Any) -> Callable[[int], object]:
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
    """Claim and finish all entries, with several threads."""
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


def tombstones(work: Work, session: Any) -> int:
    """The tombstones that the read of a claim scans in ``due`` at the end, from a query trace."""
    bucket = time.strftime("%Y-%m", time.gmtime())
    values = (work.name, bucket, 0, 180, *BEGINNING, int(time.time() * 1000), PAGE)
    result = session.execute(work.parts.due._page, values, trace=True)
    assert len(list(result)) == PAGE, "it did not read what everything went through"
    events = [event.description for event in result.get_query_trace(max_wait_sec=30).events]
    scanned = [text for text in events if "tombstone cells" in text]
    assert scanned, "the trace says nothing about tombstones"
    return sum(int(text.split(" and ")[1].split()[0]) for text in scanned)


def warm_up(work: Work, bare: Callable[[int], object], count: int) -> None:
    """Run every operation once, so that the first measurement is not the slowest."""
    spread(count, bare)
    spread(count, lambda n: work.insert(f"k{n}", PAYLOAD))
    drain(work, THREADS, Counter(), [])


def one_bucket(cassandra: CassandraConnection, count: int) -> None:
    session = connect(cassandra)
    work, _ = Work.create(declared("bucket"), cassandra=cassandra)
    alone, inserted, ended = Timed("bare transactions"), Timed("insert"), Timed("claim and done")
    bare = bare_transactions(session)
    with alone.go(half := count // 2):
        spread(half, bare)
    with inserted.go(count):
        spread(count, lambda n: work.insert(f"k{n}", PAYLOAD))
    seen: Counter[str] = Counter()
    with ended.go(count):
        drain(work, THREADS, seen, [])
    with alone.go(count - half):
        spread(count - half, lambda n: bare(half + n))
    assert len(seen) == sum(seen.values()) == count, f"{len(seen)} of {count} came out"
    print(f"\n| {count:,} entries, one bucket, {THREADS} threads | a second | of bare transactions |")
    print("|---|---|---|")
    for timed in (alone, inserted, ended):
        print(f"| {timed.what} | {timed.rate:,.0f} | {timed.rate / alone.rate:.2f} |")
    print(f"\nTombstones that the read of a claim scans in due: {tombstones(work, session)}")


def contended(cassandra: CassandraConnection, count: int) -> None:
    work, _ = Work.create(declared("contended"), cassandra=cassandra)
    spread(count, lambda n: work.insert(f"k{n}", PAYLOAD))
    seen: Counter[str] = Counter()
    latencies: list[float] = []
    ended = Timed("claim and done")
    with ended.go(count):
        drain(work, WORKERS, seen, latencies)
    assert set(seen.values()) == {1}, "something was executed twice"
    assert len(seen) == count, f"{len(seen)} of {count} came out"
    quantiles = statistics.quantiles(latencies, n=100)
    p50, p99 = quantiles[49] * 1000, quantiles[98] * 1000
    print(f"\n{count:,} entries, {WORKERS} workers: each executed once, {ended.rate:,.0f} a second;")
    print(f"a claim of {AT_ONCE} took {p50:.0f} ms (p50), {p99:.0f} ms (p99)")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--contended", type=int, default=10_000)
    parser.add_argument("--warm-up", type=int, default=5_000)
    arguments = parser.parse_args(argv)
    with own_services() as own:
        work, _ = Work.create(declared("warm-up"), cassandra=own.cassandra)
        warm_up(work, bare_transactions(connect(own.cassandra)), arguments.warm_up)
        one_bucket(own.cassandra, arguments.entries)
        contended(own.cassandra, arguments.contended)


if __name__ == "__main__":
    main()
