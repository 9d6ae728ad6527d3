"""A journal's clients on real services: what was appended is read at once, or an error says why not."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient
from kafka.structs import TopicPartition
from tests.support.services.client_world import SIZE, ClientWorld, appended, fill
from tests.support.services.journal_runs import declare_journal, given_topic
from tests.support.services.journal_world import given_keyspace
from tests.support.services.tcp_proxy import given_proxy

from tidemark import AsyncJournal, Event, Journal
from tidemark.client.actions import MOST_OF_A_ROW
from tidemark.client.errors import (
    BadInput,
    Conflict,
    DuplicateSeqNr,
    NoJournalTopic,
    NotSent,
    TablesUnreadable,
    TailLost,
    TailUnreadable,
)
from tidemark.client.events import JournalEvent, Metadata
from tidemark.client.tables.journal_tables import CassandraTables
from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.embedded.ports import LOOPBACK, free_port
from tidemark.journal.codec.record import write_action
from tidemark.journal_tables.cells import longest_key
from tidemark.kafka.tail import KafkaTail

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def connections(services: Any) -> Connections:
    return Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})


@pytest.fixture(scope="module")
def place(
    services: Any, connections: Connections, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClientWorld]:
    with (
        given_topic(connections, f"client-{uuid4().hex[:8]}", 2) as topic,
        given_keyspace(services.cassandra, "client") as keyspace,
    ):
        yield ClientWorld(services, topic, keyspace, tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def journal(place: ClientWorld) -> Iterator[Journal]:
    with place.journal() as journal:
        yield journal


@pytest.fixture
def key() -> str:
    return f"entity-{uuid4().hex[:8]}"


def numbers(journal: Journal, key: str, first: int = 1) -> list[int]:
    return [event.seq_nr for event in journal.read(key, first)]


def texts(first: int, last: int) -> list[Event]:
    return [Event.text(number, f"event {number}") for number in range(first, last + 1)]


def test_an_append_is_read_at_once_with_nothing_replicated(place: ClientWorld, key: str) -> None:
    """Not even the tables are there."""
    with place.journal(keyspace="not_there_yet") as journal:
        assert (numbers(journal, key), journal.pointer(key), journal.delete(key, 1)) == ([], None, None)
        placed = journal.append(key, texts(1, 2))
        journal.append(key, texts(3, 3))
        assert [(e.seq_nr, e.payload) for e in journal.read(key)] == [
            (1, "event 1"),
            (2, "event 2"),
            (3, "event 3"),
        ]
        assert next(journal.read(key)).offset == placed.offset
        assert (numbers(journal, key, 3), journal.pointer(key)) == ([3], 3)
        journal.delete(key, 2)
        assert (numbers(journal, key), journal.pointer(key)) == ([3], 3)
        journal.purge(key)
        assert (numbers(journal, key), journal.pointer(key)) == ([], None)


def test_every_kind_of_payload_is_read_as_it_was_appended(
    place: ClientWorld, journal: Journal, key: str
) -> None:
    events = [
        Event.json(1, {"a": [1, 2.5, None], "ž": "x"}, ["t", "u"]),
        Event.json_text(2, "0.12345678901234567890123456789"),
        Event.text(3, "žluťoučký\n"),
        Event.text(4, ""),
        Event.empty(5, ["t"]),
    ]
    binary = [Event.binary(6, b"\x00\xff"), Event.binary(7, b""), Event.json(8, {"in": "binary"})]
    more = {"metadata": {"by": "ann"}, "payload_metadata": [1], "headers": {"h": "ž"}}
    journal.append(key, events, expire_after="24 hours", **more)
    journal.append(key, binary)
    from_kafka = list(journal.read(key))
    place.replicate()
    from_cassandra = list(journal.read(key))
    assert [(e.seq_nr, e.payload_type, e.content, e.tags) for e in from_kafka] == [
        (e.seq_nr, e.payload_type, e.content, frozenset(e.tags)) for e in (*events, *binary)
    ]
    assert (from_kafka[0].metadata, from_kafka[0].headers) == (
        Metadata({"by": "ann"}, [1], "24 hours"),
        {"h": "ž"},
    )
    assert from_cassandra == from_kafka


def test_tables_and_tail_are_one_journal(place: ClientWorld, journal: Journal, key: str) -> None:
    journal.append(key, texts(1, 3 * SIZE + 7))
    place.replicate()
    journal.append(key, texts(3 * SIZE + 8, 3 * SIZE + 9))
    last = 3 * SIZE + 9
    assert numbers(journal, key) == list(range(1, last + 1))
    assert numbers(journal, key, 2 * SIZE) == list(range(2 * SIZE, last + 1))
    journal.delete(key, SIZE + 5)
    assert numbers(journal, key) == list(range(SIZE + 6, last + 1))
    place.replicate()
    assert numbers(journal, key) == list(range(SIZE + 6, last + 1))
    journal.purge(key)
    journal.append(key, texts(1, 1))
    assert numbers(journal, key) == [1]
    place.replicate()
    assert (numbers(journal, key), journal.pointer(key)) == ([1], 1)


def test_reads_inside_reads_and_beside_them(place: ClientWorld, journal: Journal, key: str) -> None:
    journal.append(key, texts(1, 3))
    found: list[list[int]] = [[e.seq_nr, *numbers(journal, key)] for e in journal.read(key)]
    assert found == [[1, 1, 2, 3], [2, 1, 2, 3], [3, 1, 2, 3]]
    seen: list[list[int]] = []
    threads = [Thread(target=lambda: seen.append(numbers(journal, key))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert seen == [[1, 2, 3]] * 8


def test_one_consumer_is_enough_for_a_partition(
    place: ClientWorld, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    new = KafkaTail._new_reader
    monkeypatch.setattr(KafkaTail, "_new_reader", lambda tail: (made.append(tail), new(tail))[1])
    with place.journal() as journal:
        journal.append(key, texts(1, 1))
        assert [numbers(journal, key) for _ in range(20)] == [[1]] * 20
    assert len(made) == 1


def test_cassandra_that_goes_away_between_pointer_and_rows(
    place: ClientWorld, journal: Journal, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.append(key, texts(1, 5))
    place.replicate()
    journal.append(key, texts(6, 7))
    with given_proxy(place.services.cassandra.port) as proxy:
        behind = CassandraConnection(hosts=(LOOPBACK,), port=proxy.port)
        with place.journal(cassandra=behind) as reader:
            assert numbers(reader, key) == list(range(1, 8))
            ask_head = CassandraTables.ask_head

            def shut_first(tables: CassandraTables, key: str) -> Any:
                proxy.shut()
                return ask_head(tables, key)

            monkeypatch.setattr(CassandraTables, "ask_head", shut_first)
            with pytest.raises(TablesUnreadable, match="Cassandra did not give the head") as raised:
                next(reader.read(key))
    assert (raised.value.topic, raised.value.key) == (place.topic, key)


def test_cassandra_that_goes_away_between_two_pages(place: ClientWorld, journal: Journal, key: str) -> None:
    journal.append(key, texts(1, 1_500))
    place.replicate()
    with given_proxy(place.services.cassandra.port) as proxy:
        behind = CassandraConnection(hosts=(LOOPBACK,), port=proxy.port)
        with place.journal(cassandra=behind) as reader:
            events, seen = reader.read(key), list[int]()
            seen.append(next(events).seq_nr)
            proxy.shut()
            with pytest.raises(TablesUnreadable, match="not all there are"):
                seen += (event.seq_nr for event in events)
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) < 1_500


def test_a_tail_of_100_000_records(place: ClientWorld, connections: Connections, key: str) -> None:
    with (
        given_topic(connections, f"{place.topic}-long", 1) as topic,
        Journal(topic, kafka=connections.kafka, cassandra=connections.control, keyspace="none") as journal,
    ):
        journal.append(key, texts(1, 2))
        fill(connections.kafka, topic, 100_000)
        journal.append(key, texts(3, 4))
        began = time.monotonic()
        assert numbers(journal, key) == [1, 2, 3, 4]
        assert len(numbers(journal, "other-7")) == 1_000
        assert time.monotonic() - began < 20
        journal.delete(key, 3)
        assert numbers(journal, key) == [4]


def test_a_tail_that_kafka_has_dropped(place: ClientWorld, connections: Connections, key: str) -> None:
    with (
        given_topic(connections, f"{place.topic}-short", 1) as topic,
        Journal(topic, kafka=connections.kafka, cassandra=connections.control, keyspace="none") as journal,
    ):
        journal.append(key, texts(1, 1))
        end = journal.append(key, texts(2, 2)).offset
        with KafkaAdminClient(**connections.kafka.client_options()) as admin:
            admin.delete_records({TopicPartition(topic, 0): end})
        with pytest.raises(TailLost) as raised:
            next(journal.read(key))
    assert (raised.value.pointer, raised.value.first) == (None, 0)


def test_what_a_transaction_has_not_committed(place: ClientWorld, connections: Connections, key: str) -> None:
    with ExitStack() as stack:
        topic = stack.enter_context(given_topic(connections, f"{place.topic}-open", 1))
        where = {"kafka": connections.kafka, "cassandra": connections.control, "keyspace": "none"}
        committed = stack.enter_context(Journal(topic, **where, patience=1))
        everything = stack.enter_context(Journal(topic, **where, isolation="read_uncommitted"))
        committed.append(key, texts(1, 1))
        producer = Producer({"bootstrap.servers": connections.kafka.servers, "transactional.id": topic})
        producer.init_transactions(20)
        producer.begin_transaction()
        record = write_action(appended(key, 2))
        producer.produce(topic, record.value, record.key, headers=list(record.headers))
        producer.flush(20)
        assert numbers(everything, key) == [1, 2]
        with pytest.raises(TailUnreadable, match="open transaction"):
            next(committed.read(key))
        producer.commit_transaction(20)
        assert numbers(committed, key) == [1, 2]


def test_a_topic_that_is_not_there_is_not_made(place: ClientWorld, key: str) -> None:
    nowhere = f"{place.topic}-nowhere"
    options = place.services.kafka.client_options()
    with Journal(nowhere, kafka=place.services.kafka, cassandra=place.services.cassandra) as journal:
        with pytest.raises(NoJournalTopic, match=nowhere):
            journal.append(key, texts(1, 1))
        with pytest.raises(NoJournalTopic, match=nowhere):
            next(journal.read(key))
    with KafkaAdminClient(**options) as admin:
        assert nowhere not in admin.list_topics()


def test_kafka_that_is_not_there(place: ClientWorld, key: str) -> None:
    silent = KafkaConnection(servers=f"{LOOPBACK}:{free_port()}")
    with place.journal(kafka=silent, patience=1) as journal, pytest.raises(NotSent) as raised:
        journal.append(key, texts(1, 1))
    assert (raised.value.action, raised.value.is_certain) == ("append", True)


def test_an_event_loop_reads_many_entities_at_once(place: ClientWorld, journal: Journal, key: str) -> None:
    keys = [f"{key}-{number}" for number in range(10)]

    async def one(client: AsyncJournal, key: str) -> list[int]:
        await client.append(key, texts(1, 20))
        await client.delete(key, 5)
        return [event.seq_nr async for event in client.read(key)]

    async def work() -> list[list[int]]:
        client = AsyncJournal.of_journal(journal)
        return await asyncio.gather(*(one(client, key) for key in keys))

    assert asyncio.run(work()) == [list(range(6, 21))] * 10


@pytest.fixture
def command(
    place: ClientWorld, connections: Connections, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """``tidemark journal``, for a pipeline that replicates the topic."""
    name = place.keyspace.replace("_", "-")
    runs = declare_journal(tmp_path, connections, place.topic, name, place.keyspace, monkeypatch).runs
    return lambda verb, *arguments: runs.command("journal", verb, name, *arguments)


def test_the_commands(place: ClientWorld, command: Callable[..., Any], key: str) -> None:
    assert command("append", key, "--json-event", '{"n": 1}', "--json-event", '{"n": 2}').code == 0
    place.replicate()
    assert command("append", key, "--text", "three", "--tag", "t").code == 0
    lines = [json.loads(line) for line in command("read", key, "--json").out.splitlines()]
    assert [(line["seq_nr"], line["payload"], line["tags"]) for line in lines] == [
        (1, {"n": 1}, []),
        (2, {"n": 2}, []),
        (3, "three", ["t"]),
    ]
    assert command("read", key, "--from", "3").out.splitlines()[-1] == "1 event."
    assert "Nothing was changed" in command("delete", key, "--to", "2").out
    assert command("delete", key, "--to", "2", "--execute", "--reason", "seen").code == 0
    assert command("pointer", key).out == "3\n"
    assert len(command("read", key, "--json").out.splitlines()) == 1
    assert command("purge", key, "--execute", "--reason", "gone").code == 0
    assert command("read", key, "--json").out == ""


def test_of_a_pipeline(place: ClientWorld, command: Callable[..., Any], key: str) -> None:
    from tidemark.cli.connections import look_up

    with Journal.of_pipeline(place.keyspace.replace("_", "-"), look_up=look_up) as journal:
        journal.append(key, texts(1, 1))
        found: JournalEvent = next(journal.read(key))
    assert (journal.topic, found.seq_nr) == (place.topic, 1)


def test_a_number_used_twice_is_told_before_and_after_replication(
    place: ClientWorld, journal: Journal, key: str
) -> None:
    """Item 10."""
    placed = journal.append(key, texts(1, 2), expected_last=0)
    journal.append(key, texts(3, 3), expected_last=2)
    with pytest.raises(Conflict) as conflict:
        journal.append(key, texts(3, 3), expected_last=2)
    assert conflict.value.last == 3
    journal.append(key, texts(2, 2))
    for _ in range(2):
        events = journal.read(key)
        assert next(events).offset == placed.offset
        with pytest.raises(DuplicateSeqNr):
            list(events)
        place.replicate()
    assert (journal.pointer(key), numbers(journal, key, 3)) == (2, [3])


def test_what_is_accepted_at_the_edge_is_replicated(place: ClientWorld, journal: Journal) -> None:
    """Item 9: the longest key, the empty one, the deepest JSON, the largest event."""
    longest = uuid4().hex + "k" * (longest_key(place.topic) - 32)
    deepest = Event.json_text(1, "[" * 253 + "1" + "]" * 253)
    largest = Event.text(2, "x" * (MOST_OF_A_ROW - 1_000))
    with pytest.raises(BadInput):
        journal.append(longest + "k", [deepest])
    journal.append(longest, [deepest])
    journal.append("", [deepest, largest])
    before = [list(journal.read(longest)), list(journal.read(""))]
    place.replicate()
    assert [list(journal.read(longest)), list(journal.read(""))] == before
    journal.purge("")
