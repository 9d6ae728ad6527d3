"""Readers of a collection on real services: from Kafka to rows of any time, through handovers, from Spark."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaProducer
from pyspark.errors import PySparkException
from tests.support.reading_world import (
    ReadingWorld,
    TablesOfTest,
    accumulated,
    balances,
    counted,
    emitted,
)
from tests.support.services.log_runs import LogRuns, declare_log, publish_here
from tests.support.waiting import wait_until

import tidemark
from tidemark.clock import SECOND
from tidemark.connections import Connections
from tidemark.consensus.control_plane import open_control
from tidemark.consensus.lightweight import LightweightConsensus, create_schema
from tidemark.outputs.model.capability import GRACE
from tidemark.outputs.reader_errors import Forgotten, NotYet, ReaderExpired, StillNeeded
from tidemark.outputs.state.output_store import OutputStore
from tidemark.outputs.state.reader_lease import TERM
from tidemark.outputs.state.reader_store import ReaderStore
from tidemark.spark import register_collections
from tidemark.spark.engine import open_session

pytestmark = pytest.mark.system

ACCOUNTS = (
    "name: accounts, kind: collection, keyspace: {name}, envelope: upsert, key: {{id: text}}, "
    "columns: {{owner: text, balance: decimal, tags: set<text>}}, shards: 4"
)
READER = """
import sys, tidemark
from tidemark.cli.connections import look_up
accounts = tidemark.Collection(sys.argv[1], look_up=look_up, who="a process that is killed")
accounts.hold(int(sys.argv[2]))
print("held", flush=True)
sys.stdin.read()
"""


class Bank:
    """A pipeline with a collection of accounts."""

    def __init__(self, services: Any, runs: LogRuns) -> None:
        self.services, self.runs, self.count = services, runs, 0

    def deliver(self, **accounts: float | None) -> int:
        """Messages, a binding with them, and its delivery; its time."""
        with KafkaProducer(**self.services.kafka.client_options()) as producer:
            for id_, balance in accounts.items():
                value = {"owner": id_.capitalize(), "balance": balance, "tags": ["b", "a"]}
                body = None if balance is None else json.dumps(value).encode()
                producer.send(self.runs.name, key=id_.encode(), value=body)
        self.count += 1
        binding = publish_here(self.runs, f"run-{self.count}")
        assert self.runs.step("deliver", "accounts").code == 0
        return binding.t

    def look_up(self, name: str) -> Mapping[str, Any]:
        if name.startswith("kafka"):
            return {"conn_type": "kafka", "extra": {"bootstrap.servers": self.services.kafka.servers}}
        (host, *_), port = self.services.cassandra.hosts, self.services.cassandra.port
        return {"conn_type": "cassandra", "host": host, "port": port}

    def open(self) -> tidemark.Collection:
        return tidemark.Collection(self.runs.name, "accounts", look_up=self.look_up, who="a test")

    @property
    def readers(self) -> ReaderStore:
        store = OutputStore(open_control(self.runs.connections), self.runs.name, "accounts")
        return ReaderStore(store)

    @property
    def holders(self) -> list[str]:
        return sorted(one.who.split(" on ")[0] for one in self.readers.load().capabilities.values())


@pytest.fixture(scope="module")
def bank(services: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    """Accounts with three bindings: ann, bob and cid come; ann changes, bob goes; dan comes."""
    name = f"bank_{uuid4().hex[:8]}"
    services.create_topic(name, partitions=2)
    connections = Connections(
        kafka=services.kafka,
        cassandra={"cassandra_default": services.cassandra},
        kafka_targets={"kafka_default": services.kafka},
    )
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("bank")
        source = f'topics: ["{name}"], format: json'
        yield Bank(services, declare_log(root, name, connections, patch, source, writer=ACCOUNTS))
        services.session.execute(f"DROP KEYSPACE IF EXISTS {name}", timeout=60)


@pytest.fixture(scope="module")
def times(bank: Bank) -> tuple[int, int, int]:
    first = bank.deliver(ann=1.5, bob=2, cid=3)
    second = bank.deliver(ann=10.25, bob=None)
    return first, second, bank.deliver(dan=4)


STATES = [
    {"ann": "1.5", "bob": "2", "cid": "3"},
    {"ann": "10.25", "cid": "3"},
    {"ann": "10.25", "cid": "3", "dan": "4"},
]


def state_of(batches: Any) -> dict[str, str]:
    found = {}
    for batch in batches:
        for row in batch.to_pylist():
            assert (row["owner"], row["tags"]) == (row["id"].capitalize(), ["a", "b"])
            found[row["id"]] = f"{row['balance'].normalize():f}"
    return found


def test_a_pipeline_s_collection_is_read_as_of_every_time(bank: Bank, times: tuple[int, int, int]) -> None:
    with bank.open() as accounts:
        for t, state in zip(times, STATES, strict=True):
            assert state_of(accounts.rows(t)) == state
            got = {id_: accounts.get({"id": id_}, at=t) for id_ in ("ann", "bob", "cid", "dan")}
            assert {id_: f"{row['balance']:f}" for id_, row in got.items() if row} == state
        assert accounts.get({"id": "dan"}) == accounts.get({"id": "dan"}, at=times[2])
        assert str(accounts.rows().schema.field("balance").type).startswith("decimal128")
        assert accounts.rows().read_all().num_rows == 3
        changes = {
            one.t: sorted((row["id"], diff) for row, _, diff in one) for one in accounts.changes(0, timeout=0)
        }
        assert changes == {
            times[0]: [("ann", 1), ("bob", 1), ("cid", 1)],
            times[1]: [("ann", -1), ("ann", 1), ("bob", -1)],
            times[2]: [("dan", 1)],
        }
        with pytest.raises(NotYet):
            accounts.rows(accounts.frontier)
        assert bank.holders == ["a test"]
    assert bank.holders == []


def test_the_same_with_an_event_loop(bank: Bank, times: tuple[int, int, int]) -> None:
    async def read() -> None:
        async with tidemark.AsyncCollection(bank.runs.name, look_up=bank.look_up) as accounts:
            assert await accounts.since() == 0
            row = await accounts.get({"id": "ann"}, at=times[0])
            assert row is not None
            assert f"{row['balance']:f}" == "1.5"
            assert state_of([batch async for batch in await accounts.rows(times[1])]) == STATES[1]
            assert (await (await accounts.rows(times[1])).read_all()).num_rows == 2
            counts = {}
            async with await accounts.changes(0, until=times[2]) as stream:
                async for one in stream:
                    counts[one.t] = len([change async for change in one])
            assert counts == dict(zip(times, (3, 3, 1), strict=True))
            waiting = asyncio.ensure_future(anext(await accounts.changes(times[2])))
            assert not (await asyncio.wait([waiting], timeout=0.2))[0], "there is nothing later"
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(read())
    assert bank.holders == []


def test_commands_read_it_and_pin_its_times(bank: Bank, times: tuple[int, int, int]) -> None:
    name, first = bank.runs.name, str(times[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemark.cli.connections.look_up", bank.look_up)
        found = bank.runs.command("collection", "get", name, "accounts", "ann", "--at", first, "--json")
        row = {"id": "ann", "owner": "Ann", "balance": "1.5", "tags": ["a", "b"]}
        assert json.loads(found.out)["row"] == row
        lines = bank.runs.command("collection", "rows", name, "accounts", "--at", first, "--json").out
        assert row | {"balance": "1.500000000000000000"} in map(json.loads, lines.splitlines())
        changes = bank.runs.command("collection", "changes", name, "accounts", "--after", first)
        assert changes.out.splitlines()[-1].startswith("4 changes through ")
        pin = ("collection", "pin", name, "accounts", "--at", first, "--execute", "--reason", "audit")
        assert bank.runs.command(*pin, "--by", "ann").code == 0
        listed = json.loads(bank.runs.command("collection", "readers", name, "accounts", "--json").out)
        assert [(one["t"], one["who"]) for one in listed["readers"]] == [(times[0], "ann: audit")]
        unpin = ("collection", "unpin", name, "accounts", f"pin-{first}", "--execute", "--reason", "done")
        assert bank.runs.command(*unpin, "--by", "ann").code == 0
    assert bank.holders == []


def test_22_a_killed_reader_holds_its_time_until_its_term_is_over(
    bank: Bank, times: tuple[int, int, int]
) -> None:
    # Given: a process that holds the first time, and is killed.
    command = [sys.executable, "-c", READER, bank.runs.name, str(times[0])]
    with subprocess.Popen(
        command, env=bank_environ(bank), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        process.send_signal(signal.SIGKILL)
    # Then: its time is held until its term and the grace have passed.
    assert bank.holders == ["a process that is killed"]
    (held,) = bank.readers.load().capabilities.values()
    later = ReaderStore(bank.readers.outputs, lambda: (held.deadline or 0) + GRACE)
    assert [one.who for one in later.expire()] == [held.who]
    assert bank.holders == []


def bank_environ(bank: Bank) -> dict[str, str]:
    cassandra = bank.services.cassandra
    address = {"conn_type": "cassandra", "host": cassandra.hosts[0], "port": cassandra.port}
    return {**os.environ, "AIRFLOW_CONN_CASSANDRA_DEFAULT": json.dumps(address)}


# Handovers, on Cassandra's tables and control plane


@pytest.fixture
def tables(services: Any) -> Iterator[TablesOfTest]:
    keyspace = f"reading_{uuid4().hex[:8]}"
    yield TablesOfTest(services.session, keyspace)
    services.session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=60)


@pytest.fixture(scope="module")
def consensus(services: Any) -> Iterator[LightweightConsensus]:
    name = f"reading_control_{uuid4().hex[:8]}"
    create_schema(services.session, {"class": "SimpleStrategy", "replication_factor": "1"}, name)
    yield LightweightConsensus(services.session, name)
    services.session.execute(f"DROP KEYSPACE {name}", timeout=60)


def test_19_20_a_stream_through_a_handover_and_a_return_adds_up_to_every_state(
    consensus: LightweightConsensus, tables: TablesOfTest
) -> None:
    # Given: two renditions, the second one without c and with other balances of b, and a stream from 0.
    chance = random.Random(7)
    world = ReadingWorld(consensus, tables)

    def mended(accounts: Mapping[str, int | None]) -> dict[str, int | None]:
        return {
            key: None if one is None else one + (key == "b") for key, one in accounts.items() if key != "c"
        }

    def some() -> dict[str, int | None]:
        keys = chance.sample([*"abcdefgh"], 4)
        return {key: chance.choice([None, 1, 2, 3]) for key in keys}

    start = dict.fromkeys("abcdefgh", 1)
    world.step(10, start)
    world.build_second({10: mended(start)})
    first = world.collection()
    stream = first.changes(0, timeout=0)
    seen = {
        one.t: [(f"{row['id']}={row['balance']}", diff) for row, _, diff in one] for one in [next(stream)]
    }
    late = 0

    # When: bindings, a handover, bindings, a return, bindings.
    for number in range(9):
        t = world.bind(20 + 10 * number).t
        accounts = some()
        world.write(1, t, accounts)
        world.write(2, t, mended(accounts))
        for rendition in (1, 2):
            world.deliver(rendition)
        if number == 2:
            world.verify(2)
            world.hand_over(2)
        if number == 4:
            late = world.output.frontier - 1
        if number == 6:
            world.roll_back(1)
    seen |= emitted(stream)

    # Then: at every binding and handover all agree: accumulated, read, read by key, and a late reader.
    with world.collection() as other:
        before = balances(other.rows(late))
        since_late = emitted(other.changes(late, timeout=0))
        moments = sorted({*seen, *(one.h - 1 for one in world.output.handovers[1:])})
        assert len([t for t in moments if t >= late]) > 3
        for t in moments:
            truth = world.true_balances(t)
            assert balances(other.rows(t)) == truth
            assert accumulated(seen, t) == counted(truth)
            if t >= late:
                assert accumulated(since_late, t, before) == counted(truth)
        row = other.get({"id": "d"}, moments[-1])
        assert (row or {}).get("balance") == world.true_balances(moments[-1]).get("d")
    first.close()
    assert world.held == []


def test_24_25_a_retired_rendition_s_tables_go_only_after_its_readers(
    consensus: LightweightConsensus, tables: TablesOfTest
) -> None:
    world = ReadingWorld(consensus, tables)
    world.step(10, {"a": 1})
    world.build_second({10: {"a": 2}})
    h = world.hand_over(2)
    world.step(h + 5, {"a": 3}, {"a": 3})
    reader, late = world.collection(), world.collection()
    assert reader.get({"id": "a"}, at=h - 1) == {"id": "a", "owner": "A", "balance": 1}
    assert late.get({"id": "a"}, at=h - 1) == {"id": "a", "owner": "A", "balance": 1}
    with pytest.raises(StillNeeded):
        world.retire_first()
    # When: one moves on, and the term of the other one ends.
    reader.hold(h + 1)
    with pytest.raises(StillNeeded):
        world.retire_first()
    world.clock.pass_seconds((TERM + GRACE) / SECOND + 1)
    world.retire_first()
    # Then: the tables are gone, and the late reader learns it from an error.
    with pytest.raises(ReaderExpired):
        late.get({"id": "a"}, at=h - 1)
    with world.collection() as again, pytest.raises(Forgotten):
        again.rows(h - 1)
    with world.collection() as again:
        assert again.get({"id": "a"}, at=h + 1) == {"id": "a", "owner": "A", "balance": 2}
    for one in (reader, late):
        one.close()


# Spark


@pytest.fixture(scope="module", params=["connect", "application"])
def engine(request: pytest.FixtureRequest, services: Any, bank: Bank) -> Iterator[Any]:
    if request.param == "application":
        from tests.support.services.cassandra_tables import spark_on

        with spark_on(services.cassandra) as spark:
            register_collections(spark, bank.runs.name, look_up=bank.look_up)
            yield spark
    else:
        with open_session("tests.collection", services.spark) as opened:
            register_collections(opened.spark, bank.runs.name, look_up=bank.look_up)
            yield opened.spark


def test_spark_reads_a_collection_as_of_a_time(
    engine: Any, bank: Bank, times: tuple[int, int, int], keep_holders: None
) -> None:
    def read(**options: str) -> Any:
        return engine.read.format("collection").options(pipeline=bank.runs.name, **options)

    old = read(asOf=str(times[0])).load()
    assert old.columns == ["id", "owner", "balance", "tags"]
    assert {row.id: f"{row.balance.normalize():f}" for row in old.collect()} == STATES[0]
    # Without a time the newest one, and with a schema of one's own.
    newest = read(writer="accounts").schema("balance decimal(10, 2), id string").load()
    found = {row.id: str(row.balance) for row in newest.collect()}
    assert found == {"ann": "10.25", "cid": "3.00", "dan": "4.00"}
    assert f"spark-{times[0]}" in bank.readers.load().capabilities
    with pytest.raises(PySparkException, match="is not readable yet"):
        read(asOf=str(times[2] + 10**15)).load().collect()


@pytest.fixture
def keep_holders(bank: Bank) -> Iterator[None]:
    """Give up what reads of Spark hold for hours."""
    yield
    for one in bank.readers.load().capabilities:
        bank.readers.drop(one)
    wait_until(lambda: bank.holders == [], 10, "no holder")
