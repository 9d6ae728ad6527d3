"""Make a small home with the code of this checkout and keep it, for the versions that come later.

    .venv/bin/python tests/homes/make_home.py [--name 0.1.0] [--keep FOLDER]

Starts a Kafka and a Cassandra of its own in a temporary folder, lets a pipeline and two work journals live
for a while through the product's own commands and applications, stops everything and writes
``tests/homes/<name>.tar.xz``. ``tests/system/test_earlier_home.py`` opens every file that lies there with the
code it is run with. To be done once for a version whose data the next one has to go on with; a file that is
there already is not written over. Takes about two minutes.

What the home holds when it is packed:

* pipeline ``shop`` with a journal, a files and a kafka writer, in five runs. Its log is compacted up to the
  third of them, has a pin, and more that can go;
* a message that the journal could not read and that an operator acknowledged (a dead letter), and a second
  one at which the journal is stopped, its gate closed; the other two writers are at the end of the log;
* a run that died between capture and audit: its binding is not published;
* records in Kafka that no run has bound yet;
* entities that expire on the day the home was made and on later ones;
* work journal ``chores``: entries that wait, one that was asked for twice, one for later, one that is claimed
  and has a request behind it, a dead letter and one that is done. Claims last for ten years;
* work journal ``errands``, whose key has two columns: paused, with one claim, which lapses after a second.

``facts.json`` in the file says what is expected: what commands answered, what readers see of the journal now,
and what they have to see when everything that is in Kafka has been replicated.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # it is a script: nothing else leads to the tests

from tests.homes.stored_home import FACTS, HOMES, OPERATOR, pack
from tests.homes.told import plain
from tests.support.services.journal_histories import History
from tests.support.services.journal_runs import read_pointers, read_visible, send
from tests.support.services.log_runs import Ended, LogRuns
from tests.support.services.node_tool import nodetool, open_jmx

from tidemark.cassandra.session import connect, disconnect_all
from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.embedded.home import make_home
from tidemark.embedded.lifecycle import down, up
from tidemark.embedded.ports import LOOPBACK, free_port, holder
from tidemark.settings import ROOT, Settings

HEAP = "512m"
SEGMENT_SIZE = 10
SEED, ENTITIES = 20, 40
RUNS = (90, 90, 60, 60, 30)
"""Actions of each run."""
CAPTURED = 25
"""Actions of the run that died before its audit."""
NOT_BOUND = 40
"""Actions that are in Kafka alone."""
PIPELINE = f"""\
name: shop
source:
  kafka: {{topics: ["shop"], format: kafka-journal, create: {{partitions: 3, retention: forever}}}}
schedule: null
log:
  path: "${{TIDEMARK_HOME}}/log/shop"
  segment_bytes: 1
  compaction: {{policy: journal, min_lag: 1s, schedule: null}}
writers:
  - {{name: cassandra, kind: journal, keyspace: shop, segment_size: {SEGMENT_SIZE}}}
  - {{name: archive, kind: files, path: "${{TIDEMARK_HOME}}/archive/shop"}}
  - {{name: copy, kind: kafka, topic: shop.copy, create: {{partitions: 2, retention: forever}}}}
expiry: {{schedule: null, timezone: UTC}}
"""
CHORES = """\
name: chores
key: {page: text}
payload: {revision: int}
time_limit: 3650d
max_failures: 1
history: 3650d
dead_letters: 1000d
"""
ERRANDS = """\
name: errands
key: {street: text, number: int}
payload: {what: json}
time_limit: 1s
bucket: day
shards: 2
"""
BECAUSE = ("--execute", "--reason", "so that there is one")


class Maker:
    """The home while it is made."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        kafka = KafkaConnection(servers=f"{LOOPBACK}:{settings.kafka_port}")
        self.connections = Connections(
            kafka=kafka,
            kafka_targets={"kafka_default": kafka},
            cassandra={
                "cassandra_default": CassandraConnection(hosts=(LOOPBACK,), port=settings.cassandra_port)
            },
        )
        self.runs = LogRuns("shop", settings.home, self.connections)
        self.history = History(SEED, ENTITIES)
        self.unpublished = 0
        """The time of the binding whose run died."""
        self._began = datetime.now(UTC)

    def say(self, line: str) -> None:
        print(f"{(datetime.now(UTC) - self._began).total_seconds():6.1f} s  {line}", flush=True)

    def tidemark(self, *arguments: str, code: int = 0) -> Ended:
        """A command of the product; refuses an exit code that was not meant."""
        ended = self.runs.command(*arguments)
        if ended.code != code:
            raise SystemExit(f"tidemark {' '.join(arguments)}: {ended.code}\n{ended.out}{ended.err}")
        return ended

    def ask(self, *arguments: str) -> Any:
        """What a command answers."""
        return json.loads(self.tidemark(*arguments, "--json").out)

    def gates(self) -> dict[str, str]:
        return {one["name"]: one["gate"] for one in self.ask("status", "shop")["writers"]}

    def replicate(self, number: int, *, unreadable: bytes | None = None) -> None:
        """One run: new records, bound, captured, audited, published and delivered."""
        records = self.history.go_on(RUNS[number])
        if unreadable is not None:
            records.append(self.history.unreadable(unreadable, partition=1))
        send(self.connections, "shop", records)
        binding = self.runs.replicate(f"run-{number}")
        assert binding is not None
        ended = self.runs.deliver(f"run-{number}")
        assert ended.code == 0, ended
        positions = {name: one["position"] for name, one in ended.summary["writers"].items()}
        self.say(f"run {number}: {binding.width} records, ids to {binding.end}; {positions}")

    def capture(self) -> None:
        """A run that dies between capture and audit."""
        send(self.connections, "shop", self.history.go_on(CAPTURED))
        self.unpublished = int(self.runs.bind("run-that-died").out)
        assert self.runs.capture(self.unpublished).code == 0

    def live(self) -> None:
        """What happens in the home."""
        self.tidemark("topics", "create", "shop")
        self.tidemark("topics", "create", "shop", "copy")
        self.replicate(0)
        self.replicate(1, unreadable=b"unreadable-1")
        self.acknowledge()
        self.replicate(2)
        pinned = self.ask("log", "show", "shop", "--from", "0", "--limit", "1")
        self.tidemark("log", "pin", "shop", str(pinned["id"]), *BECAUSE)
        compacted = self.ask("log", "compact", "shop", *BECAUSE)
        self.say(f"compacted: {compacted['dropped']} messages dropped")
        self.replicate(3, unreadable=b"unreadable-2")
        self.replicate(4)
        self.capture()
        assert self.gates() == {"cassandra": "stopped", "archive": "open", "copy": "open"}
        self.work()

    def acknowledge(self) -> None:
        """Let the message pass at which the journal was stopped."""
        assert self.gates()["cassandra"] == "stopped"
        self.tidemark("resume", "shop", "cassandra", code=1)  # it has to fail again before it may be let pass
        gate = self.ask("gate", "show", "shop", "cassandra")
        self.tidemark("offsets", "ack", "shop", "cassandra", str(gate["acknowledgeable"]), *BECAUSE)
        self.tidemark("resume", "shop", "cassandra")
        assert self.gates()["cassandra"] == "open"

    def work(self) -> None:
        """The two work journals."""
        for journal in ("chores", "errands"):
            self.tidemark("work", "create", journal)
        for page, priority in (("claimed", "10"), ("dead", "20"), ("done", "30"), ("waiting", "40")):
            self.insert("chores", page, 1, "--priority", priority)
        tokens = {one["key"]: one["token"] for one in self.ask("work", "claim", "chores", "--limit", "3")}
        self.tidemark("work", "fail", "chores", "dead", tokens["dead"], "--error", "no such page")
        self.tidemark("work", "done", "chores", "done", tokens["done"])
        self.insert("chores", "claimed", 2)
        self.insert("chores", "merged", 1)
        self.insert("chores", "merged", 2)
        self.insert("chores", "later", 1, "--process-in", "3000d")
        key, payload = '{"street": "Long Lane", "number": 7}', '{"what": ["fetch", {"times": 2}]}'
        self.tidemark("work", "insert", "errands", key, "--payload", payload)
        assert len(self.ask("work", "claim", "errands")) == 1
        self.tidemark("work", "pause", "errands", "--reason", "so that it is")

    def insert(self, journal: str, page: str, revision: int, *further: str) -> None:
        self.tidemark("work", "insert", journal, page, "--payload", f'{{"revision": {revision}}}', *further)

    def facts(self) -> dict[str, Any]:
        """What is expected of the home; sends the records that no run has bound."""
        today = datetime.now(UTC).date()
        seen = plain(read_visible(connect(self.connections.control), "shop", "shop"))
        pointers = read_pointers(connect(self.connections.control), "shop", "shop")
        send(self.connections, "shop", self.history.go_on(NOT_BOUND))
        questions = [
            *(("status", "shop"), ("gate", "show", "shop"), ("dead-letters", "list", "shop")),
            *(("offsets", "list", "shop", writer) for writer in ("cassandra", "archive", "copy")),
            *(("log", "verify", "shop"), ("log", "pins", "shop"), ("log", "compact", "shop")),
            ("offsets", "compact", "shop"),
            *(("journal", "expired", "shop", "--on", str(today + timedelta(days=n))) for n in (0, 1)),
            *(("work", what, "chores") for what in ("list", "dead")),
        ]
        return {
            "made": str(today),
            "commit": commit(),
            "home": str(self.settings.home),
            "said": [{"command": one, "answer": self.ask(*one)} for one in questions],
            "history": self.ask("work", "history", "chores"),
            "unpublished": self.unpublished,
            "visible": seen,
            "pointers": pointers,
            "in_the_end": plain(self.history.expected(SEGMENT_SIZE)),
        }

    def rest(self) -> None:
        """Bring everything that Cassandra has into few files, so that it needs no commit log."""
        disconnect_all()
        pid, _ = holder(self.settings.cassandra_port)
        assert pid is not None
        with open_jmx(pid) as port:
            for command in ("flush", "compact", "drain"):
                nodetool(port, command)


def commit() -> str:
    """The commit of this checkout."""
    asked = ["git", "rev-parse", "HEAD"]
    return subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


@contextmanager
def services(home: Path) -> Iterator[Settings]:
    """Kafka and Cassandra in a new home; stopped in the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEMARK_HOME", str(home))
        patch.setenv("TIDEMARK_PIPELINES", str(home / "pipelines"))
        patch.setenv("TIDEMARK_WORK", str(home / "work"))
        patch.setenv("LOGNAME", OPERATOR)  # commands say who calls them
        used: set[int] = set()
        for service in ("KAFKA", "CASSANDRA", "AIRFLOW"):
            used.add(port := free_port(used))
            patch.setenv(f"TIDEMARK_{service}_PORT", str(port))
        settings = Settings.read()
        make_home(settings)
        for folder, name, text in (
            ("pipelines", "shop", PIPELINE),
            ("work", "chores", CHORES),
            ("work", "errands", ERRANDS),
        ):
            (home / folder).mkdir(exist_ok=True)
            (home / folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        try:
            up(settings, ("kafka", "cassandra"), cassandra_heap=HEAP)
            yield settings
        finally:
            disconnect_all()
            down(settings)


def make(home: Path, file: Path) -> None:
    """Make the home and keep it."""
    with services(home) as settings:
        maker = Maker(settings)
        maker.say("Kafka and Cassandra run")
        maker.live()
        facts = maker.facts()
        maker.rest()
    (home / FACTS).write_text(json.dumps(facts, indent=1, default=str) + "\n", encoding="utf-8")
    maker.say(f"{file}: {pack(home, file):,} bytes")


def main(argv: Sequence[str] | None = None) -> int:
    with (ROOT / "pyproject.toml").open("rb") as project:
        version = tomllib.load(project)["project"]["version"]
    parser = argparse.ArgumentParser(prog="make_home", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--name", default=version, help=f"of the file; this version, {version}, when left out"
    )
    parser.add_argument("--keep", type=Path, help="a folder for the home itself, which is not removed")
    given = parser.parse_args(argv)
    file = HOMES / f"{given.name}.tar.xz"
    if file.exists():
        print(f"{file} is there already. Remove it, or give another --name.", file=sys.stderr)
        return 1
    if given.keep:
        make(given.keep.absolute(), file)
        return 0
    with tempfile.TemporaryDirectory(prefix="tidemark-home-") as folder:
        make(Path(folder, "home"), file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
