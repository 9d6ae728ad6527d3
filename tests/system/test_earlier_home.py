"""A home that an earlier version made goes on: what it held is there, and everything can be done with it.

Every home in ``tests/homes`` is unpacked to a folder of its own, where its Kafka and Cassandra are started.
The tests are one story, in their order: look around, do the work that waits, let the stopped writer go on,
take what is new, compact, prove. What is in a home is told in ``tests/homes/make_home.py``.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from kafka import KafkaConsumer, TopicPartition
from tests.homes.stored_home import OPERATOR, relocate, stored_homes, unpack
from tests.homes.told import plain, told_before
from tests.support.services.journal_runs import read_pointers, read_visible, without_dates
from tests.support.services.log_runs import Ended, LogRuns

from tidemark import Event, Journal, Work
from tidemark.cassandra.session import connect, disconnect_all
from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.embedded.lifecycle import down, up
from tidemark.embedded.ports import LOOPBACK, free_port
from tidemark.settings import Settings

pytestmark = pytest.mark.system

HEAP = "512m"
VISITOR = "visitor"
"""An entity that no home has."""
DONE = ("--execute", "--reason", "a test")


@dataclass(frozen=True)
class EarlierHome:
    """A home that runs again, and what was known of it when it was packed."""

    settings: Settings
    facts: dict[str, Any]

    @property
    def kafka(self) -> KafkaConnection:
        return KafkaConnection(servers=f"{LOOPBACK}:{self.settings.kafka_port}")

    @property
    def cassandra(self) -> CassandraConnection:
        return CassandraConnection(hosts=(LOOPBACK,), port=self.settings.cassandra_port)

    @property
    def shop(self) -> LogRuns:
        connections = Connections(
            kafka=self.kafka,
            kafka_targets={"kafka_default": self.kafka},
            cassandra={"cassandra_default": self.cassandra},
        )
        return LogRuns("shop", self.settings.home, connections)

    @property
    def age(self) -> int:
        """How many days ago it was packed."""
        return (datetime.now(UTC).date() - date.fromisoformat(self.facts["made"])).days

    def command(self, *arguments: str) -> Ended:
        """A command, as an operator calls it."""
        return self.shop.command(*arguments)

    def ask(self, *arguments: str) -> Any:
        """What a command answers; paths as they were where the home was made."""
        ended = self.command(*arguments, "--json")
        assert ended.code == 0, ended
        return json.loads(ended.out.replace(str(self.settings.home), self.facts["home"]))

    def work(self, journal: str) -> Work:
        """A work journal; to be opened anew after a command, which closes the sessions of its process."""
        return Work(journal, cassandra=self.cassandra)

    def writers(self) -> dict[str, tuple[int, str]]:
        """Every writer's position and gate."""
        return {one["name"]: (one["position"], one["gate"]) for one in self.ask("status", "shop")["writers"]}

    def visible(self) -> dict[str, dict[str, Any]]:
        return read_visible(connect(self.cassandra), "shop", "shop")

    def pointers(self) -> dict[int, int]:
        return read_pointers(connect(self.cassandra), "shop", "shop")

    def last_offsets(self) -> dict[int, int]:
        """Of every partition of the topic that the journal is made from."""
        with KafkaConsumer(**self.kafka.client_options()) as consumer:
            ends = consumer.end_offsets([TopicPartition("shop", number) for number in range(3)])
        return {place.partition: end - 1 for place, end in ends.items()}


@pytest.fixture(scope="module", params=stored_homes(), ids=lambda file: file.name.removesuffix(".tar.xz"))
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EarlierHome]:
    folder = tmp_path_factory.mktemp("earlier") / "home"
    facts = unpack(request.param, folder)
    used: set[int] = set()
    environment = {
        "TIDEMARK_HOME": str(folder),
        "TIDEMARK_PIPELINES": str(folder / "pipelines"),
        "TIDEMARK_WORK": str(folder / "work"),
        "LOGNAME": OPERATOR,
    }
    for service in ("KAFKA", "CASSANDRA", "AIRFLOW"):
        used.add(port := free_port(used))
        environment[f"TIDEMARK_{service}_PORT"] = str(port)
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AIRFLOW")]:
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        opened = EarlierHome(Settings.read(), facts)
        try:
            up(opened.settings, ("kafka", "cassandra"), cassandra_heap=HEAP)
            relocate(connect(opened.cassandra), facts["home"], str(folder))
            yield opened
        finally:
            disconnect_all()
            down(opened.settings)
            assert processes_in(folder) == []


def processes_in(folder: Path) -> list[int]:
    """What still runs with files of a folder."""
    lines = {one.pid: " ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])}
    return [pid for pid, line in lines.items() if str(folder) in line]


def test_commands_say_what_they_said(home: EarlierHome) -> None:
    for one in home.facts["said"]:
        now = home.ask(*one["command"])
        assert told_before(now, one["answer"]) == one["answer"], one["command"]
    assert home.ask("work", "history", "chores", "--days", str(home.age + 1)) == home.facts["history"]


def test_readers_of_the_journal_see_what_they_saw(home: EarlierHome) -> None:
    assert plain(home.visible()) == home.facts["visible"]
    assert home.pointers() == {int(one): offset for one, offset in home.facts["pointers"].items()}


def test_entries_that_wait_are_claimed_and_done_and_what_is_held_is_not(home: EarlierHome) -> None:
    with home.work("chores") as work:
        items = work.claim(10)
        assert [(one.key, one.payload["revision"]) for one in items] == [("waiting", 1), ("merged", 2)]
        assert [work.done(item) for item in items] == ["done", "done"]
        assert work.insert("later", {"revision": 2}) == "merged"


def test_a_claim_ends_with_its_token_and_what_waited_behind_it_is_next(home: EarlierHome) -> None:
    (held,) = [one for one in home.ask("work", "list", "chores") if one["status"] == "processing"]
    assert home.command("work", "done", "chores", held["key"], held["token"]).code == 0
    with home.work("chores") as work:
        (item,) = work.claim(10)
        assert (item.key, item.payload, work.done(item)) == (held["key"], held["successor"], "done")


def test_a_dead_letter_goes_back(home: EarlierHome) -> None:
    assert home.ask("work", "redrive", "chores", *DONE)["keys"] == ["dead"]
    with home.work("chores") as work:
        (item,) = work.claim(10)
        assert (item.key, work.done(item)) == ("dead", "done")
        assert [one.key for one in work.entries()] == ["later"]


def test_a_paused_journal_gives_out_a_lapsed_claim_again_once_it_is_resumed(home: EarlierHome) -> None:
    with home.work("errands") as work:
        assert work.claim(10) == []
    assert home.command("work", "resume", "errands", "--reason", "a test").code == 0
    with home.work("errands") as work:
        (item,) = work.claim(10)
        assert (item.key, item.timeouts) == ({"street": "Long Lane", "number": 7}, 1)
        assert item.payload == {"what": ["fetch", {"times": 2}]}
        assert work.done(item) == "done"


def test_the_stopped_writer_goes_on_when_an_operator_lets_its_message_pass(home: EarlierHome) -> None:
    gate = home.ask("gate", "show", "shop", "cassandra")
    assert home.writers()["cassandra"] == (gate["first_id"] - 1, "stopped")
    assert home.command("resume", "shop", "cassandra").code == 1, "the message is as unreadable as it was"
    ack = ("offsets", "ack", "shop", "cassandra", str(gate["first_id"]))
    assert home.ask(*ack, *DONE)["executed"]
    assert home.command("resume", "shop", "cassandra").code == 0
    assert home.writers()["cassandra"] == (gate["through"], "open")
    letters = home.ask("dead-letters", "list", "shop")
    assert gate["first_id"] in {letter["id"] for letter in letters}


def test_a_run_that_died_is_finished_before_anything_new_is_bound(home: EarlierHome) -> None:
    binding = home.shop.replicate("run-0-of-today")
    assert binding is not None
    assert binding.t == home.facts["unpublished"]
    log = home.ask("status", "shop")
    assert (log["log"]["end"], log["bindings"]["unpublished"]) == (binding.end, False)


def test_a_run_takes_what_was_in_kafka_and_what_is_new(home: EarlierHome) -> None:
    with Journal("shop", kafka=home.kafka, cassandra=home.cassandra, keyspace="shop") as journal:
        journal.append(VISITOR, [Event.text(1, "hello")])
        assert [event.seq_nr for event in journal.read(VISITOR)] == [1], "readable before it is replicated"

    binding = home.shop.replicate("run-1-of-today")
    assert binding is not None
    delivered = home.shop.deliver("run-1-of-today")
    assert delivered.code == 0, delivered

    assert home.writers() == dict.fromkeys(("cassandra", "archive", "copy"), (binding.end, "open"))
    assert home.pointers() == home.last_offsets()
    found = home.visible()
    assert found.pop(VISITOR)["seq_nr"] == 1
    assert plain(without_dates(found)) == home.facts["in_the_end"]


def test_the_log_is_compacted_and_keeps_what_is_pinned(home: EarlierHome) -> None:
    before = home.ask("status", "shop")["log"]
    done = home.ask("log", "compact", "shop", *DONE)
    after = home.ask("status", "shop")["log"]
    assert done["dropped"] > 0
    assert after["messages"] == before["messages"] - done["dropped"]
    assert after["compacted_below"] > before["compacted_below"]
    (pin,) = home.ask("log", "pins", "shop")
    shown = home.ask("log", "show", "shop", "--from", str(pin["id"]), "--to", str(pin["id"]))
    assert shown["id"] == pin["id"]
    assert home.ask("log", "verify", "shop")["ok"]


def test_offset_logs_are_compacted(home: EarlierHome) -> None:
    before = home.writers()
    compacted = home.ask("offsets", "compact", "shop", *DONE)["writers"]
    assert {(one["writer"], one["rows_after"]) for one in compacted} == {(name, 1) for name in before}
    assert home.writers() == before
    assert len(home.ask("offsets", "list", "shop", "cassandra")["history"]) == 1


def test_what_all_writers_have_written_is_proved_against_the_log(home: EarlierHome) -> None:
    for writer in ("archive", "copy"):
        assert home.ask("verify", "shop", writer, "--all")["clean"]
    journal = home.shop.verify("--writer", "cassandra")
    assert (journal.code, journal.summary["clean"]) == (0, True), journal
