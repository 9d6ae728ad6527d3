"""The contract's 71 replication cases through the journal writer into real Cassandra.

Every case has a topic of its own in one keyspace, and the polls of many cases with one timestamp are one
binding. Each case is judged twice: by the tables it names itself, and, all columns included, by the model of
the unit tests, which the cases have judged too.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.util import Duration
from tests.support.case_files import REPLICATION, kafka_form, load, micros, millis
from tests.support.replication_cases import expectation, told
from tests.support.services.journal_runs import read_all_pointers, read_all_visible
from tests.support.services.journal_world import CassandraJournalWorld, Record, given_keyspace, twice
from tests.support.writer_model import Delivered, Writer

from tidemark.delivery.binding_steps import write_parts_here
from tidemark.journal_tables.schema.create import create_journal
from tidemark.log.model.binding import Binding

pytestmark = pytest.mark.system

ZONES = {0: "UTC", 3: "Etc/GMT-3"}
HEAD = (
    "INSERT INTO {}.metajournal (topic, segment, id, partition, offset, segment_size, seq_nr, delete_to, "
    "created, created_date, updated, expire_after, expire_on, record_id, origin) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP 0"
)
ROW = (
    "INSERT INTO {}.journal (id, topic, segment, seq_nr, timestamp, partition, offset, meta_record_id) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP 0"
)
POINTER = "INSERT INTO {}.pointer2 (topic, partition, offset) VALUES (?, ?, ?) USING TIMESTAMP 0"
DAY = 86_400 * 10**9

Case = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What came of a case: in the tables, and in the model that got the same messages."""

    visible: dict[str, Any]
    pointers: dict[int, int]
    model: Writer
    stopped: bool


def topic_of(case: Case) -> str:
    return f"topic of {case['id']}"


def stalls(case: Case) -> bool:
    return bool(expectation(case)["outcome"] == "stalled")


def shelves() -> list[list[Case]]:
    """The cases that one writer can take: those that stop it are alone, and pointers are found only once."""
    found: dict[Any, list[Case]] = {}
    for name, case in REPLICATION.items():
        config = case["config"]
        shelf = (config["segmentSize"], config["zoneOffsetHours"], "pointer2" in case["initial"])
        found.setdefault((*shelf, name if stalls(case) else ""), []).append(case)
    return list(found.values())


def bindings(cases: list[Case]) -> Iterator[tuple[int, list[tuple[Case, dict[str, Any]]]]]:
    """The time of every binding and the polls in it: those with one timestamp, one of each case."""
    found: dict[tuple[str, int], list[tuple[Case, dict[str, Any]]]] = {}
    for case in cases:
        for number, poll in enumerate(case["polls"]):
            of_one_partition = [p for p in case["polls"][:number] if p["partition"] == poll["partition"]]
            found.setdefault((poll["timestamp"], len(of_one_partition)), []).append((case, poll))
    for (timestamp, _), polls in sorted(found.items(), key=lambda item: item[0]):
        yield micros(timestamp), polls


def records(case: Case, poll: dict[str, Any]) -> Iterator[Record]:
    for record in poll["records"]:
        key, value, headers = kafka_form(record)
        place = (topic_of(case), poll["partition"], record["offset"])
        yield Record(*place, key, value, millis(record.get("timestamp", poll["timestamp"])), headers)


def bound(binding: Binding, case: Case, poll: dict[str, Any]) -> Iterator[Delivered]:
    for topic, partition, offset, key, value, timestamp, headers in records(case, poll):
        id_ = binding.id_of(topic, partition, offset)
        times = (binding.write_time(id_), binding.t)
        yield Delivered(id_, partition, offset, *times, key, value, timestamp, headers)


def given_tables(house: CassandraJournalWorld, case: Case) -> Writer:
    """Write what the case begins with; the model with the same."""
    own = json.loads(json.dumps(case).replace(f'"{case["topic"]}"', f'"{topic_of(case)}"'))
    model = load(own, own["initial"], None)
    session, topic = house.session, topic_of(case)
    heads, rows = [], []
    for (of_topic, segment), of in _contents(model.metajournal):
        for (key,), head in of.items():
            created, updated = (_moment(head[name]) for name in ("created", "updated"))
            expiry = head.get("expire_after")
            after = None if expiry is None else Duration(0, expiry // DAY, expiry % DAY)
            place = (head["partition"], head["offset"], head["segment_size"])
            reached = (head["seq_nr"], head.get("delete_to"), created, created.date(), updated)
            rest = (after, *(head.get(name) for name in ("expire_on", "record_id", "origin")))
            heads.append((of_topic, segment, key, *place, *reached, *rest))
    for (key, of_topic, segment), of in _contents(model.journal):
        for (seq_nr, at), row in of.items():
            place = (row["partition"], row["offset"], row.get("meta_record_id"))
            rows.append((key, of_topic, segment, seq_nr, _moment(at), *place))
    pointers = [(topic, partition, offset) for partition, offset in model.pointers.items()]
    for statement, given in ((HEAD, heads), (ROW, rows), (POINTER, pointers)):
        if given:
            prepared = session.prepare(statement.format(house.keyspace))
            execute_concurrent_with_args(session, prepared, given)
    return model


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _contents(table: Any) -> list[tuple[Any, dict[Any, dict[str, Any]]]]:
    return [(partition, table.read(partition)) for partition in table.partitions()]


@pytest.fixture(scope="module", params=["once", "twice"])
def outcomes(
    services: Any, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Outcome]]:
    """All cases delivered; or each binding written twice, as if the first one to write it had died."""
    write_parts = write_parts_here if request.param == "once" else twice(write_parts_here)
    models: dict[str, Writer] = {}
    stopped: set[str] = set()
    with given_keyspace(services.cassandra, "cases") as keyspace:
        for cases in shelves():
            house = given_house(services, tmp_path_factory.mktemp("cases"), keyspace, cases)
            models |= {case["id"]: given_tables(house, case) for case in cases}
            for t, polls in bindings(cases):
                binding = house.publish(t, [one for case, poll in polls for one in records(case, poll)])
                for case, poll in polls:
                    models[case["id"]].deliver(list(bound(binding, case, poll)))
            house.deliver(write_parts)
            assert house.state.gate is None or len(cases) == 1, house.state.gate
            stopped |= {case["id"] for case in cases if house.state.gate}
        visible, pointers = (
            read(services.session, keyspace) for read in (read_all_visible, read_all_pointers)
        )
        yield {
            name: Outcome(
                visible.get(topic_of(case), {}),
                pointers.get(topic_of(case), {}),
                models[name],
                name in stopped,
            )
            for name, case in REPLICATION.items()
        }


def given_house(services: Any, root: Path, keyspace: str, cases: list[Case]) -> CassandraJournalWorld:
    config = cases[0]["config"]
    zone = ZONES[config["zoneOffsetHours"]]
    house = CassandraJournalWorld(root, services.cassandra, keyspace, config["segmentSize"], zone)
    create_journal(house.session, "cases", house.writer.declared)
    return house


@pytest.mark.parametrize("name", REPLICATION)
def test_replication_case_ends_in_the_tables_it_names(outcomes: dict[str, Outcome], name: str) -> None:
    case, outcome = REPLICATION[name], outcomes[name]
    assert outcome.stopped == stalls(case)
    expected = told(load(case, expectation(case), None), case)
    found = {
        key: {
            **entity,
            "rows": {place: (cells["partition"], cells["offset"]) for place, cells in entity["rows"].items()},
        }
        for key, entity in outcome.visible.items()
    }
    assert {"pointer2": outcome.pointers, "entities": found} == expected


@pytest.mark.parametrize("name", REPLICATION)
def test_replication_case_has_every_column_of_the_model(outcomes: dict[str, Outcome], name: str) -> None:
    outcome = outcomes[name]
    keys = {key for _, of in _contents(outcome.model.metajournal) for (key,) in of}
    assert outcome.visible == {key: outcome.model.visible(key) for key in keys}
