"""The work journal keeps its contract on real Cassandra, whatever dies and whichever answers get lost."""

from collections.abc import Iterator
from functools import cache
from typing import Any
from uuid import uuid4

import pytest
from tests.support.contracts.flaky_consensus import FlakyConsensus
from tests.support.contracts.flaky_session import FlakyLightweight
from tests.support.contracts.work_contract import JournalContract
from tests.support.contracts.work_machine import check_work
from tests.support.contracts.work_stores import StoreContract
from tests.support.contracts.work_upkeep import UpkeepContract
from tests.support.contracts.work_world import Stores, WorkWorld, given_declaration

from tidemark.work.queue.journal import WorkJournal
from tidemark.work.store import tables
from tidemark.work.store.due import BEGINNING
from tidemark.work.store.tables import CassandraArchive, CassandraDue

pytestmark = pytest.mark.system

REPLICATION = {"class": "SimpleStrategy", "replication_factor": "1"}
MANY = 200


@pytest.fixture(scope="module")
def keyspace(services: Any) -> Iterator[str]:
    name = f"work_{uuid4().hex[:8]}"
    tables.create_tables(services.session, REPLICATION, name)
    yield name
    services.session.execute(f"DROP KEYSPACE {name}")


@pytest.fixture(scope="module")
def stores(services: Any, keyspace: str) -> Stores:
    session = services.session
    return Stores(
        tables.entries_consensus(session, keyspace),
        tables.registry_consensus(session, keyspace),
        cache(lambda name: CassandraDue(session, keyspace, name)),
        cache(lambda name: CassandraArchive(session, keyspace, given_declaration(name=name, history="7d"))),
    )


class TestCassandraStores(StoreContract):
    """With this module's ``stores``: one keyspace for all, every test has a journal of its own."""


class TestCassandraJournal(JournalContract):
    """With this module's ``stores``."""


class TestCassandraUpkeep(UpkeepContract):
    """With this module's ``stores``."""


def test_making_the_tables_again_changes_nothing(services: Any, keyspace: str):
    tables.create_tables(services.session, REPLICATION, keyspace)


def test_nothing_is_lost_held_twice_or_seen_after_its_expiry(services: Any, keyspace: str, stores: Stores):
    def given_stores() -> tuple[Stores, FlakyConsensus]:
        return stores, FlakyLightweight(services.session, keyspace, tables.ENTRY)

    check_work(given_stores, examples=8, steps=25)


def test_a_claim_reads_no_tombstone(services: Any, keyspace: str, stores: Stores):
    house = WorkWorld(stores, given_declaration())
    for number in range(MANY):
        house.insert(f"k{number}")
    journal = WorkJournal(house.parts)
    while claimed := journal.claim("w", 100):
        for one in claimed:
            journal.done(one)
    assert tombstones_of_a_claim(services.session, house) == 0


def tombstones_of_a_claim(session: Any, house: WorkWorld) -> int:
    """What Cassandra says it scanned in ``due`` for the read that finds the next entries."""
    bucket = next(iter(house.parts.registry.read().buckets))
    values = (house.declared.name, bucket, 0, 180, *BEGINNING, house.clock(), MANY)
    result = session.execute(house.parts.due._page, values, trace=True)
    assert len(list(result)) == MANY
    events = [event.description for event in result.get_query_trace().events]
    (read,) = [text for text in events if "tombstone cells" in text]
    return int(read.split(" and ")[1].split()[0])
