"""The long campaign of what people break: topics, targets and folders deleted and made again between runs.

    python tests/soak/recreation.py [--seeds 20] [--first 1] [--rounds 6]

Needs Kafka and Cassandra (``make up``). Every seed is a pipeline of its own over two topics, with a journal,
an archive and a copy in another topic. After every run that is green and leaves no lag, all three are
compared with what was sent: a difference then is the worst outcome there is, and ends the campaign with 1.
What closes a gate is dealt with by the commands that a person would use.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaConsumer
from kafka.structs import TopicPartition

sys.path.insert(0, str(Path(__file__).parents[2]))  # it is a script: nothing else leads to the tests

from tests.soak.journal_history import connect as connect_services
from tests.soak.journal_history import say
from tests.support.services.journal_histories import Sent
from tests.support.services.journal_runs import given_topic, make_again, read_all_visible, send
from tests.support.services.log_runs import LogRuns, deliver_here, publish_here

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.replicate import begin_run
from tidemark.cassandra.session import connect, disconnect_all
from tidemark.connections import Connections
from tidemark.delivery.state.writer_state import Cause
from tidemark.errors import TidemarkError
from tidemark.journal.action import append
from tidemark.journal.codec.record import write_action
from tidemark.journal.events import EncodedEvent, Events
from tidemark.kafka.source_topics import SourceTopics
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.recreated_topics import Recreations
from tidemark.log.source import read_available
from tidemark.verification.outputs.reconcile import reconcile_now, usual_extent
from tidemark.verification.reconcile import close_gate
from tidemark.verification.reconciliation import Reconciliation
from tidemark.verification.sample import verify_sample
from tidemark.writers.journal.writer import JournalWriter

KEYS = ("a", "b", "c")
PARTITIONS = 2
WRITERS = ("journal", "archive", "copy")
DO = ("--execute", "--reason", "soak")
SENT_AT = 1_750_000_000_000
SENSIBLE = 0.7
"""How often people do what they are told."""
PIPELINE = """
name: {name}
source:
  kafka: {{topics: ["{name}.one", "{name}.two"]}}
schedule: null
log: {{path: "{folder}/log"}}
writers:
  - {{name: journal, kind: journal, keyspace: {keyspace}}}
  - {{name: archive, kind: files, path: "{folder}/archive", format: jsonl}}
  - {{name: copy, kind: kafka, topic: "{name}.out"}}
"""


class Campaign:
    """One pipeline, and everything that happens to it."""

    def __init__(self, folder: Path, connections: Connections, seed: int) -> None:
        self.folder, self.connections, self.chance = folder, connections, random.Random(seed)
        self.name = f"broken_{uuid4().hex[:8]}"
        self.topics, self.target = [f"{self.name}.{one}" for one in ("one", "two")], f"{self.name}.out"
        self.runs = LogRuns(self.name, folder, connections)
        self.sent: Counter[tuple[str, str, str]] = Counter()
        """How many events every entity has, by the id of its topic, topic and key."""
        self.number, self.greens, self.outcomes = 0, 0, Counter[str]()

    def declare(self) -> None:
        """The pipeline's file."""
        (self.folder / "pipelines").mkdir()
        text = PIPELINE.format(name=self.name, folder=self.folder, keyspace=self.name)
        (self.folder / "pipelines" / f"{self.name}.yaml").write_text(text)

    @property
    def opened(self) -> OpenPipeline:
        return OpenPipeline(self.runs.pipeline, self.connections)

    # What producers and runs do

    def produce(self) -> None:
        """A few events of one topic."""
        topic = self.chance.choice(self.topics)
        id_ = self._available().topic_ids[topic]
        records = []
        for key in self.chance.choices(KEYS, k=self.chance.randint(1, 6)):
            self.sent[id_, topic, key] += 1
            number = self.sent[id_, topic, key]
            events = Events((EncodedEvent(number, (), "text", f"{id_} {number}"),))
            action = write_action(append(key, SENT_AT + number, events))
            records.append(Sent(KEYS.index(key) % PARTITIONS, *action))
        send(self.connections, topic, records)

    def run(self) -> bool:
        """One run of ``replicate``; whether it is green, with nothing left to do."""
        self.number += 1
        try:
            run_id = f"run-{self.number}"
            plan = begin_run(self.runs.pipeline, self.connections, run_id, retry=True)
            if plan.t is not None:
                publish_here(self.runs, run_id)
        except TidemarkError as error:
            self.outcomes[type(error).__name__] += 1
            return False
        went_well = [self._deliver(name) for name in WRITERS]
        states = [self.opened.positions.load(name) for name in WRITERS]
        end = self.runs.control.log_head().end
        for state in states:
            if state and state.gate:
                self.outcomes[f"{state.name}: {state.gate.cause}"] += 1
        return all(went_well) and all(one and one.gate is None and one.position == end for one in states)

    def _deliver(self, name: str) -> bool:
        """Deliver to a writer and compare what it has with the log, as a run does; whether all went well."""
        opened = self.opened
        before = opened.positions.load(name)
        position = before.position if before else -1
        try:
            deliver_here(opened, name)
            self._reconcile(self.opened, name, position)
        except TidemarkError as error:
            self.outcomes[f"{name}: {type(error).__name__}"] += 1
            return False
        return True

    def _reconcile(self, opened: OpenPipeline, name: str, before: int) -> None:
        writer, state = opened.writer(name), opened.positions.load(name)
        if state is None or state.gate is not None:
            return
        if extent := usual_extent(writer, before):
            reconcile_now(writer, opened.log, opened.positions, extent, "soak")
            return
        assert isinstance(writer, JournalWriter)
        found, _ = verify_sample(writer, opened.log, opened.positions, before, 100)
        if not found.is_clean:
            told = (self.name, name, found.position, found.summary, found.to_dict())
            close_gate(opened.positions, Reconciliation(*told), "soak")

    # What people break

    def recreate_source(self) -> None:
        make_again(self.connections, self.chance.choice(self.topics), PARTITIONS)

    def recreate_target(self) -> None:
        make_again(self.connections, self.target, self.chance.randint(1, 3))

    def remove_file(self) -> None:
        if files := self._archived():
            self.chance.choice(files).unlink()

    def remove_folder(self) -> None:
        shutil.rmtree(self.folder / "archive", ignore_errors=True)

    def empty_tables(self) -> None:
        """What a journal has, but for its schema."""
        session: Any = connect(self.connections.control)
        if self.name in session.cluster.metadata.keyspaces:
            for table in ("journal", "metajournal", "pointer2"):
                session.execute(f"TRUNCATE {self.name}.{table}", timeout=60)

    # What people do about it

    def mend(self) -> None:
        """Mostly what the messages say; sometimes anything, whether it fits or not."""
        commands = list(self._advised() if self.chance.random() < SENSIBLE else self._anything())
        for command in commands:
            self.runs.command(*command)

    def _advised(self) -> Iterator[Sequence[str]]:
        if self.runs.control.log_gate():
            yield ("log", "accept", self.name, *DO)
        for name, gate in self.opened.stopped().items():
            if gate.cause is Cause.REPLACED:
                yield ("offsets", "rewind", self.name, name, "-1", *DO)
            else:
                yield ("resume", self.name, name)

    def _anything(self) -> Iterator[Sequence[str]]:
        commands: list[Sequence[str]] = [
            ("log", "accept", self.name, *DO),
            *(("resume", self.name, name) for name in WRITERS),
            ("offsets", "rewind", self.name, "copy", "-1", *DO),
            ("gate", "open", self.name, self.chance.choice(WRITERS), *DO),
        ]
        yield from self.chance.sample(commands, self.chance.randint(1, 4))

    # What must hold

    def differences(self) -> Iterator[str]:
        """Everything that is not where it should be."""
        head, available = self.runs.control.bindings_head(), self._available()
        for (topic, partition), offsets in available.offsets.items():
            bound = (head.topic_ids.get(topic), head.reached.get((topic, partition)))
            if offsets.latest and bound != (available.topic_ids[topic], offsets.latest):
                yield f"{topic}/{partition} of Kafka is not in the log"
        messages = self._messages()
        ids = sorted(messages)
        if (copied := sorted(self._copied())) != ids:
            yield f"{self.target} has {len(copied)} ids instead of {len(ids)}"
        archived = [json.loads(line)["id"] for path in self._archived() for line in path.open()]
        if archived != ids:
            yield f"the archive has {len(archived)} ids instead of {len(ids)}"
        yield from self._differing_entities(messages)

    def _differing_entities(self, messages: dict[int, dict[str, Any]]) -> Iterator[str]:
        """A journal has the first topic of every name, and says which others it goes on without."""
        control = self.runs.control
        recreations = Recreations.of(control.accepted_losses())
        bindings = {one.t: one for one in list(Bindings(control).after(-1))}
        expected: Counter[tuple[str, str]] = Counter()
        left = set()
        for one in messages.values():
            if recreations.number_in(one["topic"], bindings[one["t"]]):
                left.add(one["topic"])
            else:
                expected[one["topic"], one["key"].decode()] += 1
        visible = read_all_visible(connect(self.connections.control), self.name)
        for (topic, key), number in expected.items():
            rows = visible.get(topic, {}).get(key, {}).get("rows", {})
            found = sorted(row[1] for row in rows)
            if found != list(range(1, number + 1)):
                yield f"{topic}: {key} has events {found} instead of 1 to {number}"
        for topic in left - set(self.opened.positions.left_out("journal")):
            yield f"{topic} was made again, and the journal does not say that it goes on without it"

    def _available(self) -> Any:
        source = SourceTopics(self.name, tuple(self.topics), (), "read_committed")
        return read_available(source, self.connections.kafka)

    def _messages(self) -> dict[int, dict[str, Any]]:
        log = self.opened.log
        batches = (batch for file in log.manifest.files for batch in log.folder.read_file(file))
        return {one["id"]: one for batch in batches for one in batch.to_pylist()}

    def _copied(self) -> list[int]:
        options = {**self.connections.kafka.client_options(), "isolation_level": "read_committed"}
        found: list[int] = []
        with KafkaConsumer(**options, auto_offset_reset="earliest") as consumer:
            places = [TopicPartition(self.target, p) for p in consumer.partitions_for_topic(self.target)]
            for place in places:
                consumer.assign([place])
                (end,) = consumer.end_offsets([place]).values()
                while consumer.position(place) < end:
                    for record in consumer.poll(1000).get(place, []):
                        found.append(int(dict(record.headers)["tidemark-id"]))
        return found

    def _archived(self) -> list[Path]:
        return sorted((self.folder / "archive").glob("*.jsonl"))

    def go_through(self, rounds: int) -> list[str]:
        """So many rounds; what was different after a run that was green."""
        breaking: list[Callable[[], None]] = [
            *[self.recreate_source, self.recreate_target, self.remove_file, self.remove_folder] * 3,
            self.empty_tables,  # nothing mends that in place
        ]
        for _ in range(rounds):
            self.produce()
            steps: list[Callable[[], Any]] = [self.run, self.chance.choice(breaking)]
            steps += [self.chance.choice([self.produce, *breaking]), self.run, self.mend, self.run]
            for step in steps:
                if step() and step == self.run:
                    self.greens += 1
                    if found := list(self.differences()):
                        return found
        return []


@contextmanager
def campaign(connections: Connections, seed: int) -> Iterator[Campaign]:
    """A campaign whose topics and keyspace are gone afterwards."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        one = Campaign(Path(folder), connections, seed)
        one.declare()
        patch.setenv("TIDEMARK_PIPELINES", f"{folder}/pipelines")
        first, second = one.topics
        with (
            given_topic(connections, first, PARTITIONS),
            given_topic(connections, second, PARTITIONS),
            given_topic(connections, one.target, PARTITIONS),
        ):
            try:
                yield one
            finally:
                session: Any = connect(connections.control)
                session.execute(f"DROP KEYSPACE IF EXISTS {one.name}", timeout=60)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="recreation", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="how many histories")
    parser.add_argument("--first", type=int, default=1, help="the seed of the first one")
    parser.add_argument("--rounds", type=int, default=6, help="how often something is broken in each")
    given = parser.parse_args(argv)
    known = connect_services()
    connections = Connections(
        kafka=known.kafka, cassandra=known.cassandra, kafka_targets={"kafka_default": known.kafka}
    )
    began, wrong, greens = time.monotonic(), 0, 0
    outcomes: Counter[str] = Counter()
    try:
        for seed in range(given.first, given.first + given.seeds):
            with campaign(connections, seed) as one:
                found = one.go_through(given.rounds)
            greens, outcomes = greens + one.greens, outcomes + one.outcomes
            wrong += bool(found)
            said = "; ".join(found) or "nothing"
            say(f"seed {seed}: {one.number} runs, {one.greens} of them green; {said} differs", began)
    finally:
        disconnect_all()
    say(f"{greens} green runs over {given.seeds} seeds; {wrong} with a difference", began)
    say(", ".join(f"{what} {count}" for what, count in outcomes.most_common()), began)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
