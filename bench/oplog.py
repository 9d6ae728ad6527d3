"""OpLog: what an agent takes in and streams out, beside bare loops and a peer; replication and sync.

Run by ``make bench``. Starts Kafka and Cassandra of its own, the agent and every load in processes of their
own, and prints tables for bench/README.md. With ``--only`` one part. The peer is nginx with nchan: on Debian
``apt-get install nginx libnginx-mod-nchan``; without it that column is missing.
"""

import argparse
from collections.abc import Sequence

from oplog_agent import PIPELINE, TOPIC  # isort: skip
from oplog_fanout import measure_connections, measure_fanout  # isort: skip
from oplog_ingest import measure_ingest  # isort: skip
from oplog_objects import deliver_objects, send_objects  # isort: skip
from oplog_replication import measure_replication  # isort: skip
from oplog_sync import measure_sync  # isort: skip
from oplog_topic import create_topic  # isort: skip
from services import own_services  # isort: skip

PARTS = ("ingest", "fanout", "connections", "replication", "sync")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=PARTS, action="append", help="only this part; may be repeated")
    parser.add_argument("--rate", type=int, action="append", help="operations/s by UDP; may be repeated")
    parser.add_argument("--seconds", type=float, default=15, help="of each load")
    parser.add_argument("--operations", type=int, default=400_000, help="beside the bare loop")
    parser.add_argument("--clients", type=int, default=1_000, help="clients of streams")
    parser.add_argument("--per-client", type=float, action="append", help="operations/s; may be repeated")
    parser.add_argument("--cycles", type=int, default=10_000, help="connections that are made and ended")
    parser.add_argument("--objects", type=int, default=1_000_000, help="of replication and sync")
    given = parser.parse_args()
    parts = given.only or PARTS
    if {"ingest", "fanout", "connections"} & {*parts}:
        measure_agent(parts, given)
    if {"replication", "sync"} & {*parts}:
        measure_objects(parts, given)


def measure_agent(parts: Sequence[str], given: argparse.Namespace) -> None:
    """What an agent takes in and streams out."""
    with own_services(PIPELINE, spark=False) as own:
        folder = own.settings.home.parent
        create_topic(own.kafka, TOPIC)
        if "ingest" in parts:
            rates = given.rate or [20_000, 40_000]
            measure_ingest(own.kafka, folder, rates, given.seconds, given.operations)
        if "fanout" in parts:
            measure_fanout(folder, given.clients, given.per_client or [100], given.seconds)
        if "connections" in parts:
            measure_connections(folder, given.cycles, given.clients)


def measure_objects(parts: Sequence[str], given: argparse.Namespace) -> None:
    """What is done with all objects."""
    with own_services(PIPELINE) as own:
        folder = own.settings.home.parent
        create_topic(own.kafka, TOPIC)
        send_objects(own, given.objects)
        seconds = deliver_objects(own, given.objects, folder)
        print(f"\n{given.objects:,} objects were captured and delivered in {seconds:.0f} s.", flush=True)
        if "replication" in parts:
            measure_replication(own, folder, given.objects)
        if "sync" in parts:
            measure_sync(own, folder, given.objects, given.objects // 100)


if __name__ == "__main__":
    main()
