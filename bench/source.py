"""The data source for Cassandra: reading beside a bare scan, writing beside the journal writer's own way.

Run by ``make bench``. Starts a Cassandra of its own, so that nothing else is on it, and prints tables for
bench/README.md. With arguments only these parts: read, keys, write. ``TIDEMARK_BENCH_ROWS`` says how many
rows; the default is a million.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import journal_ceiling  # isort: skip
import source_scan  # isort: skip
from journal_load import Load  # isort: skip
from services import own_services  # isort: skip
from submit import submit  # isort: skip
from tidemark.cassandra.scan.columns import Selected
from tidemark.cassandra.scan.table_scan import scan
from tidemark.cassandra.session import connect
from tidemark.cassandra.size import ring_tokens
from tidemark.cassandra.table import read_table
from tidemark.cassandra.token_ranges import cut_ring
from tidemark.connections import CassandraConnection
from tidemark.embedded.jars.class_archive import driver_java_options
from tidemark.embedded.ports import LOOPBACK
from tidemark.journal_tables.schema.create import create_journal
from tidemark.pipeline.model import JournalDeclaration
from tidemark.settings import Settings

HERE = Path(__file__).parent
ROWS = int(os.environ.get("TIDEMARK_BENCH_ROWS", "1000000"))
FULL, SMALL = Load(ROWS, ROWS // 10), Load(20_000, 2_000)
KEYS = 1_000
ROUNDS = 2


def measure_read(settings: Settings, java: str) -> None:
    port = settings.cassandra_port
    before = [source_scan.measure("Arrow", "whole", port) for _ in range(ROUNDS)]
    tuples = source_scan.measure("tuples", "whole", port)
    places = json.dumps({"full": "whole", "small": "few"})
    found = submit(HERE / "source_job.py", "read", str(port), places, str(ROUNDS), java_options=java).answer
    after = source_scan.measure("Arrow", "whole", port)
    assert {rows for rows, _, _ in (*before, tuples, after)} == {FULL.appends}
    bare = FULL.appends / min(seconds for _, seconds, _ in (*before, after))
    print(
        f"\n| reading {FULL.appends:,} rows of 16 columns | rows/s | of the bare scan | client CPU, µs/row |"
    )
    print("|---|---|---|---|")
    for rows, seconds, cpu in (*before, after):
        print(f"| bare scan to Arrow | {rows / seconds:,.0f} | | {cpu / rows * 1e6:.1f} |")
    rows, seconds, cpu = tuples
    print(
        f"| driver's tuples | {rows / seconds:,.0f} | {rows / seconds / bare:.2f} | {cpu / rows * 1e6:.1f} |"
    )
    titles = {
        "all": "data source",
        "three": "data source, 3 columns by option",
        "needed": "data source, `query_table` of 3 columns",
    }
    for name, title in titles.items():
        for seconds in found[name]:
            rate = FULL.appends / seconds
            print(f"| {title} | {rate:,.0f} | {rate / bare:.2f} | |")


def measure_keys(settings: Settings, java: str, folder: str) -> None:
    """Filters on a clustering column with and without pushdown, and joins by key and by scan."""
    session, path = _session(settings), f"{folder}/keys.parquet"
    key = read_table(session, "whole", "journal").partition_key
    found = session.execute(f"SELECT DISTINCT {', '.join(key)} FROM whole.journal LIMIT {KEYS}").all()
    pq.write_table(pa.Table.from_pylist([row._asdict() for row in found]), path)
    places = json.dumps({"full": "whole", "keys": path})
    job = submit(HERE / "source_job.py", "keys", str(settings.cassandra_port), places, "3", java_options=java)
    best = {name: min(seconds) for name, seconds in job.answer.items()}
    print(f"\n| of {FULL.appends:,} rows of 16 columns | seconds, best of 3 | ratio |\n|---|---|---|")
    print(f"| a tenth, by a filter on a clustering column, in Spark | {best['not pushed']:.2f} | 1.00 |")
    ratio = best["not pushed"] / best["pushed"]
    print(f"| the same, pushed down | {best['pushed']:.2f} | {ratio:.1f} times as fast |")
    print(f"| {len(found):,} partitions, by a join with the table | {best['by scan']:.2f} | 1.00 |")
    ratio = best["by scan"] / best["by key"]
    print(f"| the same, `join_by_key` | {best['by key']:.2f} | {ratio:.1f} times as fast |")


def measure_write(settings: Settings, java: str, folder: str) -> None:
    port = settings.cassandra_port
    own = [journal_ceiling.fill(FULL, "own", port, with_heads=False)]
    session = _session(settings)
    paths = {}
    for name, keyspace in (("full", "whole"), ("small", "few")):
        paths[name] = f"{folder}/{name}.parquet"
        save_rows(session, keyspace, paths[name])
    _create(settings, "written")
    places = json.dumps({**paths, "keyspace": "written"})
    found = submit(HERE / "source_job.py", "write", str(port), places, str(ROUNDS), java_options=java).answer
    own.append(journal_ceiling.fill(FULL, "own", port, with_heads=False))
    print(f"\n| writing {FULL.appends:,} rows of 17 columns | rows/s | of the own way |\n|---|---|---|")
    print(f"| bulk writer, rows encoded before, before and after | {own[0]:,.0f} and {own[1]:,.0f} | |")
    for seconds in found["all"]:
        rate = FULL.appends / seconds
        print(f"| data source, from Parquet | {rate:,.0f} | {rate / (sum(own) / len(own)):.2f} |")


def save_rows(session, keyspace: str, path: str) -> None:
    """A journal as Parquet, with the write times that a delivery would give its rows."""
    table, first = read_table(session, keyspace, "journal"), 0
    selected = Selected.of(table)
    schema = selected.schema.append(pa.field("write_time", pa.int64()))
    with pq.ParquetWriter(path, schema) as file:
        for batch in scan(session, selected, cut_ring(ring_tokens(session), 32)):
            times = pa.array(range(10**15 + first, 10**15 + first + batch.num_rows))
            file.write_batch(pa.RecordBatch.from_arrays([*batch.columns, times], schema=schema))
            first += batch.num_rows


def wait_for_compaction(settings: Settings) -> None:
    session, quiet = _session(settings), 0
    while quiet < 3:
        quiet = 0 if session.execute("SELECT * FROM system_views.sstable_tasks").one() else quiet + 1
        time.sleep(1)


def _create(settings: Settings, keyspace: str) -> None:
    declared = {"name": "journal", "kind": "journal", "keyspace": keyspace}
    create_journal(_session(settings), "bench", JournalDeclaration.model_validate(declared, context={}))


def _session(settings: Settings):
    return connect(CassandraConnection(hosts=(LOOPBACK,), port=settings.cassandra_port))


def main(parts: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, own_services(services=["cassandra"]) as own:
        settings = own.settings
        journal_ceiling.fill(SMALL, "few", settings.cassandra_port)
        journal_ceiling.fill(FULL, "whole", settings.cassandra_port)
        wait_for_compaction(settings)
        java = driver_java_options(settings, FULL.appends)
        if "read" in parts:
            measure_read(settings, java)
        if "keys" in parts:
            measure_keys(settings, java, folder)
        if "write" in parts:
            measure_write(settings, java, folder)


if __name__ == "__main__":
    main(sys.argv[1:] or ("read", "keys", "write"))
