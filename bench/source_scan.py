"""A whole table read without Spark, from two processes: to Arrow as the data source does it, or to tuples."""

import time
from multiprocessing import get_context
from typing import Any

from cassandra.cluster import EXEC_PROFILE_DEFAULT
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import tuple_factory

from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.table_scan import scan
from tidemark.cassandra.session import connect
from tidemark.cassandra.size import ring_tokens
from tidemark.cassandra.table import Table, quoted, read_table
from tidemark.cassandra.token_ranges import TokenRange, cut_ring, deal
from tidemark.connections import CassandraConnection

PROCESSES = 2
RANGES = 32
"""As many as the data source has on two cores."""


def to_arrow(session: Any, table: Table, ranges: list[TokenRange]) -> int:
    return sum(batch.num_rows for batch in scan(session, Selected.of(table), ranges))


def to_tuples(session: Any, table: Table, ranges: list[TokenRange]) -> int:
    """As a plain script would: the driver's rows, several ranges concurrently."""
    key = quoted(table.partition_key)
    statement = session.prepare(
        f"SELECT * FROM {table.cql_name} WHERE token({key}) > ? AND token({key}) <= ?"
    )
    profile = session.execution_profile_clone_update(EXEC_PROFILE_DEFAULT, row_factory=tuple_factory)
    found = execute_concurrent_with_args(
        session,
        statement,
        [(each.after, each.upto) for each in ranges],
        concurrency=4,
        results_generator=True,
        execution_profile=profile,
    )
    return sum(1 for result in found for _ in result.result_or_exc)


WAYS = {"Arrow": to_arrow, "tuples": to_tuples}


def work(way: str, keyspace: str, port: int, ranges: list[TokenRange], start: Any, done: Any) -> None:
    session = connect(CassandraConnection(hosts=("127.0.0.1",), port=port))
    table = read_table(session, keyspace, "journal")
    WAYS[way](session, table, ranges[:1])
    start.wait()
    began, cpu = time.monotonic(), time.process_time()
    rows = WAYS[way](session, table, ranges)
    done.put((rows, time.monotonic() - began, time.process_time() - cpu))


def measure(way: str, keyspace: str, port: int) -> tuple[int, float, float]:
    """Rows, seconds, and seconds of CPU of both clients."""
    session = connect(CassandraConnection(hosts=("127.0.0.1",), port=port))
    groups = deal(cut_ring(ring_tokens(session), RANGES), PROCESSES)
    context = get_context("spawn")
    start, done = context.Barrier(PROCESSES), context.Queue()
    processes = [
        context.Process(target=work, args=(way, keyspace, port, group, start, done)) for group in groups
    ]
    for process in processes:
        process.start()
    found = [done.get() for _ in processes]
    for process in processes:
        process.join()
    rows, seconds, cpu = zip(*found, strict=True)
    return sum(rows), max(seconds), sum(cpu)
