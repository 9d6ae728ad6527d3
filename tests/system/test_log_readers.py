"""Readers of a log on a real control plane: any number of them may have ended, the next one meets none."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.support.services.traced_session import TracedSession

from tidemark.consensus.lightweight import LightweightConsensus, create_schema
from tidemark.log.state.control import LogControl, LogHead
from tidemark.log.state.readers import Reading, readers, reading_log

pytestmark = pytest.mark.system

ROUNDS = 200


@pytest.fixture
def keyspace(services: Any) -> Iterator[str]:
    name = f"readers_{uuid4().hex[:8]}"
    create_schema(services.session, {"class": "SimpleStrategy", "replication_factor": "1"}, name)
    yield name
    services.session.execute(f"DROP KEYSPACE {name}")


def test_a_reader_meets_no_tombstone_of_readers_that_ended(services: Any, keyspace: str) -> None:
    control = LogControl(LightweightConsensus(services.session, keyspace), "orders")
    for number in range(ROUNDS):
        head = LogHead(manifest=f"manifest {number}", digest="d")
        control.replace_log(control.log_head().version, head)
        with reading_log(control, f"round {number}") as reading:
            reading.take_up()

    traced = TracedSession(services.session)
    watched = LogControl(LightweightConsensus(traced, keyspace), "orders")
    reading = Reading(watched, "one more round")
    assert reading.take_up().manifest == f"manifest {ROUNDS - 1}"
    assert [one.who.split(" on ")[0] for one in readers(watched, 0)] == ["one more round"]
    reading.release()
    assert (traced.statements > 0, traced.tombstones) == (True, 0)
