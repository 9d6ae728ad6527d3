"""The ceiling: a load's rows and heads, encoded beforehand, from two processes; no Spark, no decoding."""

import sys
import time
from datetime import UTC
from multiprocessing import get_context
from typing import Any

from journal_load import TOPIC, Load

from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection
from tidemark.journal.codec.record import read_action
from tidemark.journal.effect import Message
from tidemark.journal.fold import Fold
from tidemark.journal_tables import cells as journal_cells
from tidemark.journal_tables.schema.create import create_journal
from tidemark.journal_tables.statements import JournalTables
from tidemark.pipeline.model import JournalDeclaration

PROCESSES = 2


def write(
    load: Load, partitions: list[int], keyspace: str, port: int, with_heads: bool, start: Any, seconds: Any
) -> None:
    declared = JournalDeclaration.model_validate(
        {"name": "journal", "kind": "journal", "keyspace": keyspace}, context={}
    )
    session = connect(CassandraConnection(hosts=("127.0.0.1",), port=port))
    tables = JournalTables.of(session, declared)
    rows, heads = encode(load, partitions)
    start.wait()
    began = time.monotonic()
    with tables.bulk() as bulk:
        for cells in rows:
            bulk.add(tables._insert_row, cells)
        bulk.flush()
        for cells in heads if with_heads else ():
            bulk.add(tables._insert_head, cells)
    seconds.put(time.monotonic() - began)


def encode(load: Load, partitions: list[int]) -> tuple[list[bytes], list[bytes]]:
    rows, heads = [], []
    for partition in partitions:
        folds: dict[str, Fold] = {}
        for offset, (key, header, value) in enumerate(load.of_partition(partition)):
            action = read_action(key, value, 1_794_000_000_000 + offset, 0, [("journal.action", header)])
            fold = folds.setdefault(action.key, Fold(TOPIC, action.key, None, zone=UTC))
            fold.apply(Message(offset, partition, offset, 10**15 + offset, 10**15, action))
        effects = {key: fold.effect() for key, fold in folds.items()}
        # In the order of arrival, as in a delivery.
        arrived = sorted((row for one in effects.values() for row in one.rows), key=lambda row: row.offset)
        rows += map(journal_cells.row_cells, arrived)
        heads += [
            journal_cells.head_cells(TOPIC, key, one.head, one.write_time) for key, one in effects.items()
        ]
    return rows, heads


def measure(load: Load, keyspace: str, port: int) -> float:
    """Appends a second."""
    rate = fill(load, keyspace, port)
    connect(CassandraConnection(hosts=("127.0.0.1",), port=port)).execute(f"DROP KEYSPACE {keyspace}")
    return rate


def fill(load: Load, keyspace: str, port: int, with_heads: bool = True) -> float:
    """Write a load and keep its rows; appends a second."""
    session = connect(CassandraConnection(hosts=("127.0.0.1",), port=port))
    declared = JournalDeclaration.model_validate(
        {"name": "journal", "kind": "journal", "keyspace": keyspace}, context={}
    )
    create_journal(session, "bench", declared)
    context = get_context("spawn")
    start, seconds = context.Barrier(PROCESSES), context.Queue()
    processes = [
        context.Process(
            target=write,
            args=(
                load,
                list(range(n, load.partitions, PROCESSES)),
                keyspace,
                port,
                with_heads,
                start,
                seconds,
            ),
        )
        for n in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    slowest = max(seconds.get() for _ in processes)
    for process in processes:
        process.join()
    return load.appends / slowest


if __name__ == "__main__":
    print(measure(Load(int(sys.argv[1]), int(sys.argv[2])), "ceiling", int(sys.argv[3])))
