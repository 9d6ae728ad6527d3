"""Two renditions of a writer on real services: one is built beside the active one, then readers take it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaProducer
from tests.support.services.journal_histories import History
from tests.support.services.journal_runs import (
    given_journal,
    given_topic,
    read_all_pointers,
    read_all_visible,
    send,
)
from tests.support.services.log_runs import LogRuns, declare_log, publish_here
from tests.support.services.rendition_steps import (
    declare_next,
    edit,
    hand_over_now,
    status_of,
    store_of,
)

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.cassandra.session import connect
from tidemark.collection.tables.reading import CollectionReader
from tidemark.collection.tables.tables import CollectionTables
from tidemark.connections import Connections
from tidemark.writers.collection.writer import CollectionWriter

pytestmark = pytest.mark.system

WRITER = (
    "name: accounts, kind: collection, keyspace: {name}, envelope: upsert, key: {{id: text}}, "
    "columns: {{owner: text}}, shards: 4"
)


@pytest.fixture
def bank(services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LogRuns]:
    """A pipeline with a collection of accounts."""
    name = f"bank_{uuid4().hex[:8]}"
    services.create_topic(name, partitions=3)
    cassandra = {"cassandra_default": services.cassandra}
    connections = Connections(
        kafka=services.kafka, cassandra=cassandra, kafka_targets={"kafka_default": services.kafka}
    )
    source = f'topics: ["{name}"], format: json'
    yield declare_log(tmp_path, name, connections, monkeypatch, source, writer=WRITER)
    connect(services.cassandra).execute(f"DROP KEYSPACE IF EXISTS {name}", timeout=60)


def send_owners(runs: LogRuns, owners: Mapping[str, str]) -> None:
    with KafkaProducer(**runs.connections.kafka.client_options()) as producer:
        for key, owner in owners.items():
            producer.send(runs.name, key=key.encode(), value=json.dumps({"owner": owner}).encode())


def owners_at(runs: LogRuns, name: str, t: int) -> dict[str, str]:
    """The owner of every account at a time, by a rendition."""
    writer = OpenPipeline(runs.pipeline, runs.connections).writer(name)
    assert isinstance(writer, CollectionWriter)
    tables = CollectionTables.of(connect(runs.connections.cassandra["cassandra_default"]), writer.place)
    rows = [row for batch in CollectionReader(tables).rows(t) for row in batch.to_pylist()]
    return {row["id"]: row["owner"] for row in rows}


def test_a_collection_is_built_beside_the_active_one_and_handed_over(bank: LogRuns) -> None:
    # Given: a collection whose number of shards was changed in the file.
    send_owners(bank, {f"a{n}": "ann" for n in range(30)})
    bindings = [publish_here(bank, "run-1")]
    assert bank.step("deliver", "accounts").code == 0
    edit(bank, "shards: 4", "shards: 3")

    # When: a run goes on, and the next rendition is built by the application.
    send_owners(bank, {"a1": "bob", "b1": "bob"})
    bindings.append(publish_here(bank, "run-2"))
    assert bank.step("deliver", "accounts").code == 0
    assert any("shards" in one for one in status_of(bank)["differs"])
    declare_next(bank, "accounts")
    built = bank.deliver("build", further=["--consumer", "accounts.r2", "--until-caught-up"])
    assert (built.code, built.summary["renditions"]["accounts.r2"]["position"]) == (0, bindings[-1].end)
    assert any("shards" in one for one in built.summary["differs"]["accounts"])

    # And: its gate is closed, and an ordinary run delivers to the active one.
    reason = ("--execute", "--reason", "a test", "--by", "ann")
    assert bank.command("gate", "stop", bank.name, "accounts.r2", *reason).code == 0
    send_owners(bank, {"c1": "cid"})
    bindings.append(publish_here(bank, "run-3"))
    ended = bank.deliver("run-3")
    assert (ended.code, ended.summary["writers"]["accounts"]["position"]) == (0, bindings[-1].end)
    assert ended.summary["renditions"]["accounts.r2"]["gate"]["cause"] == "hand"
    assert [one["gate"] for one in status_of(bank)["renditions"]] == ["open", "stopped"]
    assert bank.command("gate", "open", bank.name, "accounts.r2", *reason).code == 0
    assert bank.step("deliver", "accounts.r2").code == 0

    # Then: both have the same state at every time, and readers take the second one from the frontier on.
    for binding in bindings:
        assert owners_at(bank, "accounts", binding.t) == owners_at(bank, "accounts.r2", binding.t) != {}
    handover = hand_over_now(bank, "accounts", 2)
    status = status_of(bank)
    assert [one["state"] for one in status["renditions"]] == ["superseded", "active"]
    assert (status["differs"], status["frontier"] > handover.h) == ([], True)
    send_owners(bank, {"d1": "dan"})
    publish_here(bank, "run-4")
    for name in ("accounts", "accounts.r1"):
        assert bank.step("deliver", name).code == 0
        assert owners_at(bank, name, status_of(bank)["frontier"])["d1"] == "dan"
    assert store_of(bank, "accounts").require().active.number == 2


def test_a_journal_is_built_beside_the_active_one_and_handed_over(
    services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given: a journal with a history, and another size of segments in the file.
    topic, history = f"orders-{uuid4().hex[:8]}", History(7)
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    with (
        given_topic(connections, topic),
        given_journal(tmp_path, connections, topic, f"{topic}-r", monkeypatch) as journal,
    ):
        runs, place, writer = journal.runs, journal.keyspace, "cassandra"
        send(connections, topic, history.go_on(300))
        journal.replicate("run-1", with_spark=False)
        edit(runs, "segment_size: 10", "segment_size: 20")

        # When: the next rendition is built, and one gate closes while the other goes on.
        assert any("segment_size" in one for one in status_of(runs)["differs"])
        made = declare_next(runs, writer)
        assert made.place == f"{place}_r2"
        try:
            assert runs.step("deliver", f"{writer}.r2").code == 0
            reason = ("--execute", "--reason", "a test", "--by", "ann")
            assert runs.command("gate", "stop", runs.name, writer, *reason).code == 0
            send(connections, topic, history.go_on(200))
            binding = publish_here(runs, "run-2")
            for name in (f"{writer}.r2", writer):
                assert runs.step("deliver", name).code == 0
            first, second = status_of(runs)["renditions"]
            assert (first["gate"], second["position"], second["lag"]) == ("stopped", binding.end, 0)
            assert runs.command("gate", "open", runs.name, writer, *reason).code == 0
            assert runs.step("deliver", writer).code == 0

            # Then: readers see the same in both, and a handover names the place.
            found = [_without_segments(journal.session, one) for one in (place, made.place)]
            assert found[0] == found[1] != {}
            assert read_all_pointers(journal.session, place) == read_all_pointers(journal.session, made.place)
            hand_over_now(runs, writer, 2)
            assert OpenPipeline(runs.pipeline, connections).journal().declared.keyspace == made.place
        finally:
            journal.session.execute(f"DROP KEYSPACE IF EXISTS {made.place}", timeout=60)


def _without_segments(session: Any, keyspace: str) -> dict[str, Any]:
    """What readers can tell, without the size of segments, which is what differs."""
    found: dict[str, Any] = {}
    for topic, entities in read_all_visible(session, keyspace).items():
        for key, entity in entities.items():
            rows = {(seq_nr, at): cells for (_, seq_nr, at), cells in entity.pop("rows").items()}
            found[f"{topic}/{key}"] = {**entity, "segment_size": None, "rows": rows}
    return found
