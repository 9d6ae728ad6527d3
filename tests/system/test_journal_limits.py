"""Where Cassandra has no place for an entity: its writer stops there, and a person may go on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.memory_letters import LetterList
from tests.support.services.journal_runs import read_visible
from tests.support.services.journal_world import WRITER, CassandraJournalWorld, Record, given_keyspace

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.delivery.operator.actions import OperatorActions
from tidemark.delivery.state.writer_state import Cause
from tidemark.journal.action import append
from tidemark.journal.codec.record import write_action
from tidemark.journal.events import EncodedEvent, Events
from tidemark.journal_tables.cells import longest_key
from tidemark.journal_tables.reader import JournalReader

pytestmark = pytest.mark.system

TOPIC = "limits"
LONGEST = "k" * longest_key(TOPIC)


@pytest.fixture
def house(services: Any, tmp_path: Path) -> Iterator[CassandraJournalWorld]:
    with given_keyspace(services.cassandra, TOPIC) as keyspace:
        yield CassandraJournalWorld(tmp_path, services.cassandra, keyspace)


def given_append(key: str, offset: int) -> Record:
    events = Events((EncodedEvent(1, (), "text", "event 1"),))
    return Record(TOPIC, 0, offset, *write_action(append(key, 1, events)))


def test_the_longest_key_is_written_and_a_longer_one_stops_the_writer(house: CassandraJournalWorld) -> None:
    house.publish(1_000_000, [given_append(LONGEST, 0), given_append(LONGEST + "k", 1), given_append("k", 2)])

    gate = house.deliver().gate

    assert gate is not None
    assert (gate.cause, gate.first_id) == (Cause.MESSAGE, 1)
    assert f"its key is longer than the {len(LONGEST)} bytes that Cassandra takes" in gate.reason
    assert [len(one["rows"]) for one in read_visible(house.session, house.keyspace, TOPIC).values()] == [1]


@pytest.mark.parametrize("more", [1, 10_000], ids=["for Cassandra", "for the driver"])
def test_a_message_whose_key_is_too_long_may_be_acknowledged(house: CassandraJournalWorld, more: int) -> None:
    house.publish(1_000_000, [given_append(LONGEST + "k" * more, 0), given_append("k", 1)])
    house.deliver()
    operator = OperatorActions(house.positions, house.log)
    operator.acknowledge(house.writer, 0, None, LetterList()).execute(AuditEntry("ack", "ann", "too long", 0))
    operator.open(WRITER).execute(AuditEntry("open", "ann", "go on", 0))

    assert (house.deliver().gate, list(read_visible(house.session, house.keyspace, TOPIC))) == (None, ["k"])


def test_of_a_key_that_is_too_long_nothing_is_found(house: CassandraJournalWorld) -> None:
    house.publish(1_000_000, [given_append("k", 0)])
    house.deliver()
    reader, longer = JournalReader.open(house.connection, house.writer.declared), LONGEST + "k"
    assert list(reader.read_heads(TOPIC, [longer, "k"])) == ["k"]
    assert [key for key, _ in reader.read_rows(TOPIC, [(longer, 0), ("k", 0)])] == ["k"]


def test_i04_a_probe_writes_to_every_table_what_no_reader_sees(house: CassandraJournalWorld) -> None:
    house.publish(1_000_000, [given_append("k", 0)])
    house.deliver()
    before = read_visible(house.session, house.keyspace, TOPIC)
    house.writer.is_reachable()
    assert read_visible(house.session, house.keyspace, TOPIC) == before
    counted = [
        len(list(house.session.execute(f"SELECT * FROM {house.keyspace}.{table}")))
        for table in ("journal", "metajournal", "pointer2")
    ]
    assert counted == [1, 1, 1]
