"""Shared by the tests of the command line: a pipeline file, a result, the options that execute a plan."""

from pathlib import Path
from typing import NamedTuple

from tests.support.log_samples import given_binding, publish_all

from tidemark.clock import wall_clock
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, WriterGate
from tidemark.log.files.parquet import LogFolder
from tidemark.log.state.control import LogControl

ORDERS = """
name: orders
source:
  kafka: {topics: ["orders", "refunds"], topic_prefixes: ["eu."]}
writers:
  - {name: cassandra, kind: journal}
  - {name: archive, kind: files, path: "${TIDEMARK_HOME}/archive"}
"""


class Ended(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


EXECUTE = ("--execute", "--reason", "known", "--by", "ann")


def given_failures(positions: Positions, failures: int) -> Positions:
    """``archive`` was stopped by message 3, so often."""
    state, reason = positions.load("archive"), "it makes no sense"
    gate = WriterGate(Cause.MESSAGE, 3, 3, 5, reason, wall_clock(), failures=failures)
    positions.commit(state, state.position, None, gate)
    return positions


def publish_two_bindings(control: LogControl, root: Path) -> None:
    """Ids 0 to 2, then 3 and 5 of ``orders``; offset 4 holds no message."""
    first = given_binding(1_000_000, 0, ("orders", 0, 0, 3))
    second = given_binding(2_000_000, 3, ("orders", 0, 3, 6), run_id="run-2")
    values = {
        first: {("orders", 0): {0: b"a", 1: b"b", 2: b"c"}},
        second: {("orders", 0): {3: b"d", 5: b"f"}},
    }
    publish_all(control, LogFolder("orders", str(root)), values)
