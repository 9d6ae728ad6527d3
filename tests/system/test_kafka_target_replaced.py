"""A topic that a kafka writer republishes to is deleted and made again, on real Kafka (item 3)."""

import json
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from tests.support.services.delivered_outputs import (
    EXECUTE,
    WRITER,
    declare_republished,
    make_again,
    republished,
    state,
    target_of,
)
from tests.support.services.log_runs import LogRuns, publish_here

from tidemark.delivery.state.writer_state import Cause
from tidemark.kafka.producer import RecordToSend
from tidemark.writers.kafka.last_id import find_last_id
from tidemark.writers.kafka.output import OutputPartition
from tidemark.writers.kafka.target import describe_topic
from tidemark.writers.kafka.writer import partition_of

pytestmark = pytest.mark.system


@pytest.fixture
def runs(services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LogRuns:
    runs = declare_republished(services, tmp_path, monkeypatch, writer=WRITER)
    send(services, runs, 5)
    publish_here(runs, "run-1")
    assert runs.step("deliver", "archive").code == 0
    return runs


def send(services: Any, runs: LogRuns, count: int) -> None:
    with KafkaProducer(**services.kafka.client_options()) as producer:
        for number in range(count):
            producer.send(runs.name, key=b"k", value=b"%d" % number)


def test_i03_another_topic_stops_the_writer_and_a_rewind_really_sends_everything(
    services: Any, runs: LogRuns
) -> None:
    # Given: a writer that knows which topic it wrote to, and one that was made again since.
    old = state(runs).target
    assert old == describe_topic(target_of(runs)).id
    make_again(services, runs)
    new = describe_topic(target_of(runs)).id
    send(services, runs, 2)
    publish_here(runs, "run-2")

    # When: it is delivered to, and resumed.
    runs.step("deliver", "archive")
    resumed = runs.command("resume", runs.name, "archive")

    # Then: nothing was sent, and the reason names both ids and the way out.
    gate = state(runs).gate
    assert gate is not None
    assert (resumed.code, state(runs).position, gate.cause) == (1, 4, Cause.REPLACED)
    assert all(said in gate.reason for said in (str(old), str(new), f"offsets rewind {runs.name} archive -1"))
    assert republished(services, f"{runs.name}.out") == []

    # And: a rewind takes the new one, and then everything is sent.
    rewound = runs.command("offsets", "rewind", runs.name, "archive", "-1", *EXECUTE, "--json")
    assert json.loads(rewound.out)["target"] == new
    assert runs.step("deliver", "archive").code == 0
    assert (state(runs).position, state(runs).gate, state(runs).target) == (6, None, new)
    assert republished(services, f"{runs.name}.out") == list(range(7))

    # And: another rewind says that nothing is sent, and sends nothing.
    again = runs.command("offsets", "rewind", runs.name, "archive", "-1", *EXECUTE, "--json")
    plan = json.loads(again.out)
    assert (plan["to_send"], plan["skipped"]) == (0, 7)
    runs.step("deliver", "archive")
    assert republished(services, f"{runs.name}.out") == list(range(7))


def test_i03_a_transaction_that_was_open_when_the_topic_went_away_is_in_no_one_s_way(
    services: Any, runs: LogRuns
) -> None:
    # Given: a process that died in the middle of a transaction, and a topic made again with more partitions.
    died = OutputPartition(target_of(runs), 0)
    died._producer.begin([RecordToSend(f"{runs.name}.out", None, b"half", partition=0)])
    died._producer._producer.flush(10)
    make_again(services, runs, partitions=2)

    # When: a person rewinds into it.
    assert runs.command("offsets", "rewind", runs.name, "archive", "-1", *EXECUTE).code == 0
    assert runs.step("deliver", "archive").code == 0

    # Then: everything is there, where the new number of partitions puts it.
    assert (state(runs).position, state(runs).shape["partitions"]) == (4, 2)
    assert find_last_id(target_of(runs), partition_of(b"k", 0, 2)) == 4
    died.close()
