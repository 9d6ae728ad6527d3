"""Collections: delivery beside a bare loop over the same cells, and readers beside the driver's own queries.

Run by ``make bench``. Starts Cassandra of its own, and prints tables for bench/README.md. Bare writes and
``deliver`` take two cores each. Sizes are options; with ``--only`` one part: deliver, get, rows, changes.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import collection_ceiling  # isort: skip
from collection_load import (  # isort: skip
    WRITER,
    Load,
    connection_at,
    make_log,
    place_in,
    rows_of_load,
)
from services import own_services  # isort: skip
from submit import submit  # isort: skip
from cassandra.cluster import EXEC_PROFILE_DEFAULT
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import tuple_factory

from tidemark import Collection
from tidemark.cassandra.session import connect
from tidemark.client.collection.opened import OpenedCollection
from tidemark.client.collection.output_view import OutputView
from tidemark.client.collection.rendition_rows import TableRenditions
from tidemark.collection.tables.create import create_collection
from tidemark.collection.tables.scanning import whole_ring
from tidemark.collection.tables.tables import CollectionTables
from tidemark.collection.tables.writing import write_rows
from tidemark.consensus.lightweight import LightweightConsensus, create_schema
from tidemark.embedded.jars.class_archive import driver_java_options
from tidemark.log.bindings.door import Bindings
from tidemark.log.state.control import LogControl
from tidemark.outputs.model.handover import advance_frontier
from tidemark.outputs.model.lifecycle import RenditionProposal
from tidemark.outputs.model.rendition import Signature
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.progress import ConsumerState, Progress
from tidemark.outputs.state.reader_store import ReaderStore
from tidemark.settings import Settings

HERE = Path(__file__).parent
PARTS = ("deliver", "get", "rows", "changes")
T, STEP = 2 * 10**15, 10**10
GETS, ROUNDS = 3_000, 5
WARM_UP = 40_000
"""Messages that are delivered first: they start Spark's Python workers, which stay."""


class Finished:
    """A consumer that has finished everything that is bound."""

    def reached(self, number: int) -> int:
        return 2**62

    def state(self, number: int) -> ConsumerState:
        return ConsumerState(2**62, 2**62)


class Read:
    """A collection that was written binding by binding, with a control plane that says so."""

    def __init__(self, port: int, keyspace: str) -> None:
        self.session = connect(connection_at(port))
        create_schema(self.session, {"class": "SimpleStrategy", "replication_factor": "1"})
        create_collection(self.session, place_in(keyspace))
        self.tables = CollectionTables.of(self.session, place_in(keyspace))
        consensus = LightweightConsensus(self.session)
        self.store, self.control = OutputStore(consensus, keyspace, WRITER), LogControl(consensus, keyspace)
        self.store.create(RenditionProposal({}, str(self.tables.place), 0, Signature("bench", "bench", 1)))

    def write(self, load: Load, t: int) -> None:
        """The rows of a binding, and the frontier after it."""
        binding = self.control.add_binding(self.control.bindings_head(), load.binding(t))
        write_rows(self.tables, rows_of_load(load, binding, [0, 1, 2, 3]))
        self.store.change(lambda output: advance_frontier(output, 1, t + 1))

    def open(self) -> Collection:
        """A reader."""
        progress = Progress(self.control, Bindings(self.control), Finished())
        view = OutputView(self.store, progress)
        renditions = TableRenditions(lambda: self.session, lambda rendition: self.tables.place)
        return Collection.of_opened(OpenedCollection(view, ReaderStore(self.store), renditions, "bench"))


def measure_deliver(settings: Settings, load: Load) -> None:
    """Deliver the load twice, after a small binding with other keys; the second time every key is known."""
    port = settings.cassandra_port
    for _ in range(2):
        collection_ceiling.measure(load, "warm", port)
    before = collection_ceiling.measure(load, "ceiling", port)
    with tempfile.TemporaryDirectory() as folder:
        warm_up = Load(WARM_UP, WARM_UP, 0, "warm-up")
        loads = [warm_up, *(replace(load, first=WARM_UP + n * load.messages) for n in range(2))]
        bindings = [make_log(folder, one, T + number * STEP) for number, one in enumerate(loads)]
        texts = json.dumps([binding.to_json() for binding in bindings])
        options = driver_java_options(settings, load.messages)
        arguments = (folder, "delivered", str(port), texts)
        done = submit(HERE / "collection_job.py", *arguments, java_options=options).answer
    connect(connection_at(port)).execute("DROP KEYSPACE delivered", timeout=60)
    after = collection_ceiling.measure(load, "ceiling", port)
    ceiling = statistics.mean((before, after))
    print(f"\n| {load.messages:,} upserts, {load.keys:,} keys | messages/s | of the ceiling |\n|---|---|---|")
    print(f"| ceiling, before and after | {before:,.0f} and {after:,.0f} | |")
    for name, seconds in zip(("new keys", "known keys"), done["seconds"][1:], strict=True):
        rate = load.messages / seconds
        print(f"| deliver, {name} | {rate:,.0f} | {rate / ceiling:.2f} |")


def measure_get(read: Read, load: Load) -> None:
    """Single keys, in turns with the bare query."""
    profile = read.session.execution_profile_clone_update(EXEC_PROFILE_DEFAULT, row_factory=tuple_factory)
    place = read.tables.place
    columns = ", ".join(("gone", *place.data_columns))
    bare = read.session.prepare(
        f"SELECT {columns} FROM {place} WHERE id = ? AND t <= ? ORDER BY t DESC LIMIT 1"
    )
    chance, at = random.Random(1), T
    keys = [f"account-{chance.randrange(load.keys):08d}" for _ in range(GETS)]
    with read.open() as collection:
        ways: dict[str, Callable[[str], Any]] = {
            "bare query": lambda key: read.session.execute(bare, (key, at), execution_profile=profile).one(),
            "`get`, at a time": lambda key: collection.get({"id": key}, at=at),
            "`get`, newest": lambda key: collection.get({"id": key}),
        }
        found: dict[str, list[float]] = {way: [] for way in ways}
        for round_ in range(2):  # the first one warms up
            for key in keys:
                for way, one in ways.items():
                    began = time.perf_counter()
                    assert one(key) is not None
                    if round_:
                        found[way].append((time.perf_counter() - began) * 1e6)
    print(
        f"\n| a single key of {load.keys:,} | p50 µs | p99 µs | p50, of the bare query |\n|---|---|---|---|"
    )
    middle = statistics.median(found["bare query"])
    for way, times in found.items():
        p50, p99 = statistics.median(times), statistics.quantiles(times, n=100)[98]
        print(f"| {way} | {p50:.0f} | {p99:.0f} | {p50 / middle:.2f} |")


def bare_scan(read: Read, where: str, values: tuple[Any, ...]) -> int:
    """The rows of the whole ring as the driver gives them; how many there are."""
    place, session = read.tables.place, read.session
    columns = ", ".join((*place.key_columns, *place.data_columns, "gone"))
    query = f"SELECT {columns} FROM {place} WHERE token(id) > ? AND token(id) <= ? {where}"
    profile = session.execution_profile_clone_update(EXEC_PROFILE_DEFAULT, row_factory=tuple_factory)
    ranges = [(each.after, each.upto, *values) for each in whole_ring(session)]
    found = execute_concurrent_with_args(
        session,
        session.prepare(query),
        ranges,
        concurrency=4,
        results_generator=True,
        execution_profile=profile,
    )
    return sum(1 for result in found for _ in result.result_or_exc)


def measure_rows(read: Read) -> None:
    """All rows as of a time, in turns with a bare scan that asks for the same rows."""
    at = T
    newest = "AND t <= ? PER PARTITION LIMIT 1 ALLOW FILTERING"
    with read.open() as collection:
        ways: dict[str, Callable[[], int]] = {
            "bare scan, the newest row of each key": lambda: bare_scan(read, newest, (at,)),
            "`rows(at)`": lambda: sum(batch.num_rows for batch in collection.rows(at)),
            "bare scan, every row": lambda: bare_scan(read, "", ()),
        }
        found: dict[str, list[float]] = {way: [] for way in ways}
        for round_ in range(ROUNDS + 2):
            for way, scan in ways.items():
                began = time.perf_counter()
                count = scan()
                if round_ > 1:
                    found[way].append(count / (time.perf_counter() - began))
    print("\n| the whole collection as of a time | rows/s | of the first |\n|---|---|---|")
    first = statistics.median(next(iter(found.values())))
    for way, rates in found.items():
        print(f"| {way} | {statistics.median(rates):,.0f} | {statistics.median(rates) / first:.2f} |")


def measure_changes(read: Read, first: Load, bindings: int, changes: int) -> None:
    """Many bindings, in quarters: the rate must not depend on how many came before."""
    made = first.messages
    for number in range(bindings):
        read.write(Load(changes, first.keys, made), T + (number + 1) * STEP)
        made += changes
    with read.open() as collection, collection.changes(T, timeout=0) as stream:
        taken = list(times_of(stream))
    print(f"\n| changes of {bindings} bindings with {changes:,} messages | changes/s | of the first |")
    print("|---|---|---|")
    quarter = max(len(taken) // 4, 1)
    base = 0.0
    for start in range(0, len(taken), quarter):
        part = taken[start : start + quarter]
        rate = sum(count for count, _ in part) / sum(seconds for _, seconds in part)
        base = base or rate
        print(f"| bindings {start + 1} to {start + len(part)} | {rate:,.0f} | {rate / base:.2f} |")


def times_of(stream: Any) -> Iterator[tuple[int, float]]:
    """The number of changes and the seconds of every binding."""
    began = time.perf_counter()
    for one in stream:
        count = sum(1 for _ in one)
        yield count, time.perf_counter() - began
        began = time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000, help="upserts of one binding")
    parser.add_argument("--keys", type=int, default=100_000, help="keys")
    parser.add_argument("--bindings", type=int, default=100, help="bindings whose changes are read")
    parser.add_argument("--changes", type=int, default=10_000, help="messages of each of them")
    parser.add_argument("--only", choices=PARTS, action="append", help="only this part; may be repeated")
    arguments = parser.parse_args()
    parts = arguments.only or PARTS
    load = Load(arguments.messages, arguments.keys)
    with own_services(services=("cassandra",)) as own:
        if "deliver" in parts:
            measure_deliver(own.settings, load)
        if {"get", "rows", "changes"} & {*parts}:
            read = Read(own.settings.cassandra_port, "bench_read")
            read.write(load, T)
            if "get" in parts:
                measure_get(read, load)
            if "rows" in parts:
                measure_rows(read)
            if "changes" in parts:
                measure_changes(read, load, arguments.bindings, arguments.changes)


if __name__ == "__main__":
    main()
