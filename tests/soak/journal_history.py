"""The long campaign of the journal: random histories in many runs, some of whose deliveries are killed.

    python tests/soak/journal_history.py [--seeds 1,2,3] [--runs 50] [--kills 20] [--actions 20000]

Needs Kafka and Cassandra (``make up``). Every seed is a history of its own in a topic and a keyspace of its
own, which are removed again. Ends with 1 when a reader would see anything else than the history left, and
shows what; the seed brings it back.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from pprint import pformat
from uuid import uuid4

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # it is a script: nothing else leads to the tests

from tests.support.services.journal_histories import History
from tests.support.services.journal_runs import FEW, given_journal, given_topic, random_death, send

from tidemark.cassandra.session import disconnect_all
from tidemark.cli.connections import look_up
from tidemark.connections import CassandraConnection, Connections, KafkaConnection
from tidemark.faults import AT_ONCE

SHOWN = 5
"""How many differing entities are shown of one seed."""


def connect() -> Connections:
    """The services of the environment."""
    return Connections(
        kafka=KafkaConnection.from_airflow("kafka_default", look_up("kafka_default")),
        cassandra={
            "cassandra_default": CassandraConnection.from_airflow(
                "cassandra_default", look_up("cassandra_default")
            )
        },
    )


def replicate(connections: Connections, seed: int, runs: int, kills: int, actions: int) -> bool:
    """One seed's history; whether a reader sees it as it was."""
    history, chance, began = History(seed), random.Random(f"deaths of {seed}"), time.monotonic()
    name = f"soak-{uuid4().hex[:8]}"
    killed = set(chance.sample(range(runs), min(kills, runs)))
    cuts = [round(actions * number / runs) for number in range(runs + 1)]
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        given_topic(connections, name),
        given_journal(Path(folder), connections, name, name, patch) as journal,
    ):
        patch.setenv(AT_ONCE, FEW)  # a run is small: otherwise all its rows would leave together
        for number in range(runs):
            send(connections, name, history.go_on(cuts[number + 1] - cuts[number]))
            death = random_death(chance) if number in killed else None
            binding = journal.replicate(f"run-{number}", death)
            fate = "" if death is None else f", after a death at {death}"
            say(f"seed {seed}, run {number + 1} of {runs}: {binding.width} records{fate}", began)
        different = journal.difference_to(history)
    say(f"seed {seed}: {len(different) or 'nothing'} differs", began)
    for key in list(different)[:SHOWN]:
        found, expected = different[key]
        print(f"{key!r}\n  found    {pformat(found)}\n  expected {pformat(expected)}")
    return not different


def say(line: str, began: float) -> None:
    print(f"{time.monotonic() - began:7.1f} s  {line}", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="journal_history", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", default="1,2,3", help="what the histories are made from")
    parser.add_argument("--runs", type=int, default=50, help="runs of every history")
    parser.add_argument("--kills", type=int, default=20, help="how many of them lose a delivery to kill -9")
    parser.add_argument("--actions", type=int, default=20_000, help="actions of every history")
    given = parser.parse_args(argv)
    connections = connect()
    try:
        same = [
            replicate(connections, int(seed), given.runs, given.kills, given.actions)
            for seed in given.seeds.split(",")
        ]
    finally:
        disconnect_all()
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
