"""A full replication from an agent, in turns with a bare scan of the same table in the same order."""

import statistics
import time
from pathlib import Path
from typing import Any, cast

from cassandra.cluster import EXEC_PROFILE_DEFAULT
from cassandra.query import tuple_factory

from oplog_agent import PIPELINE_NAME, running_agent  # isort: skip
from oplog_processes import answer_of, started  # isort: skip
from services import Own  # isort: skip
from tidemark.cassandra.session import connect
from tidemark.collection.tables.scanning import whole_ring
from tidemark.pipeline.loader import find_pipeline
from tidemark.writers.collection.kind import CollectionDeclaration
from tidemark.writers.collection.places import place_of

ROUNDS = 2
COLUMNS = ("type", "id", "event", "timestamp", "parents", "gone", "partition", "offset")


def place_of_objects() -> Any:
    """The tables of the collection."""
    (declared,) = find_pipeline(PIPELINE_NAME).writers
    return place_of(PIPELINE_NAME, cast("CollectionDeclaration", declared))


def bare_scan(session: Any, columns: tuple[str, ...] = COLUMNS) -> int:
    """The newest row of every object in the order of tokens, as the driver gives it; how many there are."""
    place = place_of_objects()
    query = session.prepare(
        f"SELECT {', '.join(columns)}, token(type, id) FROM {place} WHERE token(type, id) > ? AND "
        "token(type, id) <= ? PER PARTITION LIMIT 1"
    )
    profile = session.execution_profile_clone_update(EXEC_PROFILE_DEFAULT, row_factory=tuple_factory)
    ranges = sorted((each.after, each.upto) for each in whole_ring(session))
    return sum(1 for one in ranges for _ in session.execute(query, one, execution_profile=profile))


def replicate(port: int) -> dict[str, Any]:
    """Take all objects from an agent."""
    return cast("dict[str, Any]", answer_of(started("oplog_replica.py", port)))


def measure_replication(own: Own, folder: Path, count: int) -> None:
    """Print the table of replications."""
    session = connect(own.cassandra)
    rates: dict[str, list[float]] = {"bare ordered scan": [], "replication": []}
    sizes, cpu = 0, list[float]()
    with running_agent(folder) as agent:
        for number in range(ROUNDS + 1):
            began = time.monotonic()
            found = bare_scan(session)
            seconds = time.monotonic() - began
            assert found == count, found
            used = agent.cost.cpu
            taken = replicate(agent.port)
            assert taken["objects"] == count, taken
            if number:  # the first one warms up
                rates["bare ordered scan"].append(count / seconds)
                rates["replication"].append(count / taken["seconds"])
                cpu.append((agent.cost.cpu - used) / count * 1e6)
                sizes = taken["bytes"]
        memory = agent.cost.memory
    base = statistics.median(rates["bare ordered scan"])
    print(f"\n| {count:,} objects | objects/s | of the scan |\n|---|---|---|")
    for name, each in rates.items():
        print(f"| {name} | {statistics.median(each):,.0f} | {statistics.median(each) / base:.2f} |")
    print(
        f"\nReplication: {sizes / count:.0f} bytes and {statistics.median(cpu):.1f} µs of the agent's ",
        end="",
    )
    print(f"CPU an object; the agent had {memory / 1e6:.0f} MB afterwards.")
