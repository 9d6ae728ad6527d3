"""The ceiling of a collection's delivery: the same cells, encoded beforehand, written by two processes."""

import time
from multiprocessing import get_context
from typing import Any

from collection_load import PARTITIONS, Load, connection_at, place_in, rows_of_load

from tidemark.cassandra.session import connect
from tidemark.collection.model.row import key_bytes
from tidemark.collection.tables.codec.cells import change_cells, row_cells
from tidemark.collection.tables.create import create_collection
from tidemark.collection.tables.tables import CollectionTables

PROCESSES = 2
T = 2 * 10**15


def write(load: Load, partitions: list[int], keyspace: str, port: int, start: Any, seconds: Any) -> None:
    """One process: encode, wait for the other one, write."""
    tables = CollectionTables(connect(connection_at(port)), place_in(keyspace))
    rows = rows_of_load(load, load.binding(T), partitions)
    places = {(row.shard, row.t, key_bytes(row.key)) for row in rows}
    cells = [row_cells(row, key_bytes(row.key)) for row in rows]
    changes = [change_cells(*one) for one in places]
    statements = tables._insert_row, tables._insert_change
    start.wait()
    began = time.monotonic()
    with tables.bulk() as bulk:
        for statement, values in zip(statements, (cells, changes), strict=True):
            for one in values:
                bulk.add(statement, one)
    seconds.put(time.monotonic() - began)


def measure(load: Load, keyspace: str, port: int) -> float:
    """Upserts a second."""
    session = connect(connection_at(port))
    create_collection(session, place_in(keyspace))
    context = get_context("spawn")
    start, seconds = context.Barrier(PROCESSES), context.Queue()
    shares = [list(range(number, PARTITIONS, PROCESSES)) for number in range(PROCESSES)]
    processes = [
        context.Process(target=write, args=(load, share, keyspace, port, start, seconds)) for share in shares
    ]
    for process in processes:
        process.start()
    slowest = max(seconds.get() for _ in processes)
    for process in processes:
        process.join()
    session.execute(f"DROP KEYSPACE {keyspace}", timeout=60)
    return load.messages / slowest
