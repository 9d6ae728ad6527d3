"""Offset logs on real Cassandra: counted by Spark, compacted in one transaction, cheap to read afterwards."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.support.services.log_runs import LogRuns, declare_log

from tidemark.connections import Connections
from tidemark.consensus.control_plane import open_control
from tidemark.delivery.state.lease import take
from tidemark.delivery.state.offset_log import carry_out, compact_writer, plan_writer
from tidemark.delivery.state.offset_log_plan import OffsetPlan
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import OffsetEntry, OffsetEntryKind
from tidemark.faults import FaultPoint

pytestmark = pytest.mark.system

EXECUTE = ("--execute", "--reason", "known", "--by", "ann")


@pytest.fixture
def runs(services: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LogRuns:
    """A pipeline of the test's own; nothing of it ever runs but what the test does."""
    connections = Connections(kafka=services.kafka, cassandra={"cassandra_default": services.cassandra})
    for variable in ("KAFKA", "CASSANDRA"):
        monkeypatch.delenv(f"AIRFLOW_CONN_{variable}_DEFAULT", raising=False)
    return declare_log(tmp_path, f"offsets-{uuid4().hex[:8]}", connections, monkeypatch)


@pytest.fixture
def positions(runs: LogRuns) -> Positions:
    return positions_of(runs)


def positions_of(runs: LogRuns) -> Positions:
    return Positions(open_control(runs.connections), runs.name)


def move(positions: Positions, writer: str, *moves: int) -> None:
    """Bring a writer to these positions, one entry each; back is a rewind."""
    state = positions.load(writer) or positions.register(writer, {"kind": "files"})
    for position in moves:
        kind = OffsetEntryKind.REWIND if position < state.position else OffsetEntryKind.COMMIT
        entry = OffsetEntry(kind, position, 1_000, "run-1", namespaces={f"n{position % 3}": position})
        state = positions.commit(state, position, entry)


def entries(positions: Positions, writer: str) -> list[tuple[str, int]]:
    return [(entry.kind.value, entry.position) for entry in positions.history(writer)]


def tombstones_of_a_read(services: Any, positions: Positions, writer: str) -> int:
    """How many tombstones Cassandra comes across when the offset log is read, by its own trace."""
    query = (
        "SELECT row, body FROM tidemark.object WHERE kind = 'writer' AND name = %s "
        "AND row >= 'ack/' AND row < 'ack0' ORDER BY row DESC LIMIT 500"
    )
    result = services.session.execute(query, (f"{positions.pipeline}/{writer}",), trace=True)
    lines = [event.description for event in result.get_query_trace(max_wait_sec=10).events]
    counts = [re.search(r"and (\d+) tombstone", line) for line in lines]
    found = [int(count[1]) for count in counts if count]
    assert found, lines
    return max(found)


def test_what_spark_finds_and_plans_is_what_is_done(runs: LogRuns, positions: Positions) -> None:
    """Over all pipelines, as ``<pipeline>.compact_offsets`` does it for one: a plan, then what it says."""
    other = Positions(positions.consensus, f"{runs.name}-eu")
    move(positions, "archive", *range(60), 20, *range(21, 40))
    move(positions, "retired", *range(5))
    move(positions, "new", 7)
    move(other, "archive", 1, 2, 3)
    before = positions.standing("archive")

    planned = runs.compact_offsets("--every")
    assert (planned.code, len(positions.history("archive"))) == (0, 80), planned
    mine = [one for one in planned.summary["writers"] if one["pipeline"].startswith(runs.name)]
    found = {
        f"{one['pipeline']}/{one['writer']}".removeprefix(runs.name): (
            one["rows_before"],
            one["rows_after"],
            one["rewinds"],
            one["executed"],
        )
        for one in mine
    }
    assert found == {
        "/archive": (80, 2, 1, False),
        "/retired": (5, 1, 0, False),
        "-eu/archive": (3, 1, 0, False),
    }
    counted = {one["writer"]: (one["rows"], one["bytes"]) for one in planned.summary["counted"]}
    assert counted[f"{runs.name}/archive"] == (80, mine[0]["bytes_before"])
    assert counted[f"{runs.name}/new"][0] == 1

    outcomes = [carry_out(positions.consensus, OffsetPlan.from_dict(one), execute=True) for one in mine]
    assert [one.executed for one in outcomes] == [True, True, True]
    assert entries(positions, "archive") == [("rewind", 20), ("commit", 39)]
    assert (entries(positions, "retired"), entries(other, "archive")) == ([("commit", 4)], [("commit", 3)])
    assert before.differences(positions.standing("archive")) == []


def test_tombstones_that_a_read_comes_across_do_not_grow_with_rows_or_with_compactions(
    services: Any, positions: Positions
) -> None:
    found = []
    for start in range(0, 200, 40):
        move(positions, "archive", *range(start, start + 40))
        compact_writer(positions, plan_writer(positions, "archive"))
        found.append(tombstones_of_a_read(services, positions, "archive"))
    # One range that every later one covers: its two ends.
    assert max(found) <= 2, found

    move(positions, "archive", 50, *range(51, 90))
    compact_writer(positions, plan_writer(positions, "archive"))
    with_a_rewind = tombstones_of_a_read(services, positions, "archive")
    assert with_a_rewind <= 4
    assert entries(positions, "archive") == [("rewind", 50), ("commit", 89)]


def test_a_command_that_is_killed_before_or_after_its_transaction_is_finished_by_the_next(
    runs: LogRuns, positions: Positions
) -> None:
    move(positions, "archive", 1, 2, 3, 1, 2, 5)
    before = positions.standing("archive")
    command = ("offsets", "compact", runs.name, *EXECUTE)
    assert runs.command(*command, fault=FaultPoint.OFFSETS_PLANNED).code == -9
    assert (len(positions.history("archive")), positions.deeds("archive")) == (6, [])
    assert runs.command(*command, fault=FaultPoint.OFFSETS_COMPACTED).code == -9
    assert entries(positions, "archive") == [("rewind", 1), ("commit", 5)]
    assert runs.command(*command).code == 0
    positions = positions_of(runs)  # a command that ends closes this process's sessions
    assert before.differences(positions.standing("archive")) == []
    assert [deed.who for deed in positions.deeds("archive")] == ["ann"]


def test_a_writer_that_commits_all_the_time_and_its_compaction_do_not_break_each_other(
    positions: Positions,
) -> None:
    hold = take(positions, positions.register("archive", {}), "run-1")

    def commit_all() -> None:
        for position in range(100):
            hold.commit(position, {f"n{position % 3}": position})

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(commit_all)
        while not working.done():
            compact_writer(positions, plan_writer(positions, "archive"))
        working.result()
    compact_writer(positions, plan_writer(positions, "archive"))
    assert entries(positions, "archive") == [("commit", 99)]
    assert positions.namespaces("archive") == {"n0": 99, "n1": 97, "n2": 98}
    hold.release()
