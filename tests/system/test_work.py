"""The work journal keeps its contract on real Cassandra, whatever dies and whichever answers get lost."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.contract.flaky_consensus import FlakyConsensus
from tests.contract.flaky_session import FlakyLightweight
from tests.contract.work_contract import JournalContract, StoreContract
from tests.contract.work_house import House, Stores, given_declaration
from tests.contract.work_machine import check_work

from tidemark.work import tables
from tidemark.work.journal import WorkJournal
from tidemark.work.tables import CassandraArchive, CassandraDue

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
        lambda name: CassandraDue(session, keyspace, name),
        lambda name: CassandraArchive(session, keyspace, given_declaration(name=name, history="7d")),
    )


class TestCassandraStores(StoreContract):
    """With this module's ``stores``: one keyspace for all, every test has a journal of its own."""


class TestCassandraJournal(JournalContract):
    """With this module's ``stores``."""


def test_making_the_tables_again_changes_nothing(services: Any, keyspace: str):
    tables.create_tables(services.session, REPLICATION, keyspace)


def test_nothing_is_lost_held_twice_or_seen_after_its_expiry(services: Any, keyspace: str, stores: Stores):
    def given_stores() -> tuple[Stores, FlakyConsensus]:
        return stores, FlakyLightweight(services.session, keyspace, tables.ENTRY)

    check_work(given_stores, examples=4, steps=15)


def test_a_claim_reads_no_tombstone(services: Any, keyspace: str, stores: Stores):
    house = House(stores, given_declaration())
    for number in range(MANY):
        house.insert(f"k{number}")
    journal = WorkJournal(house.parts)
    while claimed := journal.claim("w", 100):
        for one in claimed:
            journal.done(one)
    assert tombstones_of_a_claim(services.session, keyspace, house) == 0


def tombstones_of_a_claim(session: Any, keyspace: str, house: House) -> int:
    """What Cassandra says it scanned in ``due`` for the read that finds the next entries."""
    from cassandra.query import SimpleStatement

    bucket = next(iter(house.parts.registry.read().buckets))
    statement = SimpleStatement(
        f"SELECT hint_id, key FROM {keyspace}.due WHERE journal = %s AND bucket = %s AND shard = 0 "
        "AND priority = 180 AND due_at <= %s"
    )
    values = (house.declared.name, bucket, house.clock())
    result = session.execute(statement, values, trace=True)
    assert len(list(result)) >= MANY
    events = [event.description for event in result.get_query_trace().events]
    (read,) = [text for text in events if "tombstone cells" in text]
    return int(read.split(" and ")[1].split()[0])
