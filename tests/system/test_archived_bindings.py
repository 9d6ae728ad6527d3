"""Bindings leave a real control plane: few rows stay, no read meets removed ones, every binding is found."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.archive_world import BINDINGS, ArchiveWorld

from tidemark.consensus.lightweight import LightweightConsensus, create_schema
from tidemark.log.model.binding_list import ListSizes

pytestmark = pytest.mark.system


@pytest.fixture
def consensus(services: Any) -> Iterator[LightweightConsensus]:
    name = f"archived_{uuid4().hex[:8]}"
    create_schema(services.session, {"class": "SimpleStrategy", "replication_factor": "1"}, name)
    yield LightweightConsensus(services.session, name)
    services.session.execute(f"DROP KEYSPACE {name}")


def test_few_rows_stay_in_cassandra_and_no_read_meets_removed_ones(
    services: Any, consensus: LightweightConsensus, tmp_path: Path
):
    world = ArchiveWorld(tmp_path, consensus, sizes=ListSizes(bindings=100, span=5_000), keep=1_000)
    world.replicate_many(1_000)

    assert len(world.rows("t/")) == len(world.rows("run/")) <= 225
    assert [one.base for one in world.door.every()] == list(range(1_000))
    assert world.door.of_run("run-3").base == 3
    assert world.bind("run-7") == world.door.at(80)
    removed = world.control.bindings_head().removed
    assert tombstones_read(services.session, consensus, f"t/{removed + 1:020d}") == 0
    assert tombstones_read(services.session, consensus, "t/") > 0


def tombstones_read(session: Any, consensus: LightweightConsensus, since: str) -> int:
    """How many tombstones Cassandra reads for more rows than there are from this row on."""
    values = (BINDINGS.kind, BINDINGS.name, since, "t/~", 1_000)
    trace = session.execute(consensus._last.bind(values), trace=True).get_query_trace(max_wait=30)
    said = [re.search(r"and (\d+) tombstone", event.description) for event in trace.events]
    return max(int(found[1]) for found in said if found)
