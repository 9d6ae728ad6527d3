"""sweep_work: maintains work journals: lapsed claims, expiries, buckets, lost hints. Loses no entry.

With --dry-run it is read-only.
"""

import argparse
import json
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.cassandra.session import connect
from tidemark.connections import BadConnection, WorkConnections
from tidemark.spark.application import cause_of, named_session, summarise
from tidemark.spark.jobs.sweep_work import census_with_spark
from tidemark.work.errors import SweepIncomplete, UnknownJournal
from tidemark.work.open_journal import open_parts
from tidemark.work.queue.sweep import Sweep
from tidemark.work.store.known_journals import Address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMED = "a declared journal, or CONNECTION/KEYSPACE/JOURNAL; may be repeated"


def sweep(arguments: argparse.Namespace) -> dict[str, Any]:
    """Sweep every named journal that exists. A failure of one does not stop the others."""
    connections = WorkConnections.load(arguments.connections)
    journals: dict[str, Any] = {}
    errors: dict[str, str] = {}
    with named_session("work.sweep_work", connections.spark) as spark:
        for name in arguments.journal:
            try:
                journals[name] = sweep_one(spark, connections, Address.parse(name), arguments.dry_run)
            except Exception as error:
                traceback.print_exc()
                errors[name] = cause_of(error)
    if errors:
        print(json.dumps(journals), file=sys.stderr)
        raise SweepIncomplete(errors, len(arguments.journal))
    return {"dry_run": arguments.dry_run, "journals": journals}


def sweep_one(
    spark: "SparkSession", connections: WorkConnections, address: Address, dry_run: bool
) -> dict[str, Any]:
    """Sweep one journal: first what only a whole scan can find, then everything that is due."""
    if (connection := connections.cassandra.get(address.connection)) is None:
        raise BadConnection(address.connection, "was not handed over. Look for the reason in the task's log.")
    try:
        parts = open_parts(connect(connection), address.journal, address.keyspace)
    except UnknownJournal as error:
        return {"skipped": str(error)}
    census = census_with_spark(spark, connection, address.journal, address.keyspace)
    swept = Sweep(parts, execute=not dry_run).run(census.lost, census.gone)
    counts = {"lost": len(census.lost), "gone": len(census.gone)}
    return {**asdict(swept), "census": {**asdict(census), **counts}}


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="sweep_work", description=__doc__)
    parser.add_argument("--journal", action="append", required=True, help=NAMED)
    parser.add_argument(
        "--dry-run", action="store_true", help="report what would be done, and change nothing"
    )
    parser.add_argument("--connections", required=True, type=Path, help="file with the connections to use")
    parser.add_argument("--summary", type=Path, help="where to write the JSON summary")
    return summarise(argv, lambda: sweep(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
