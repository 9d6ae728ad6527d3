"""What a log costs beside its messages, by its age: publish, open, status, delivery of one new binding.

Run by ``make bench``. Starts a Cassandra of its own; ``--memory`` measures with a control plane in memory.
Logs of 10, 10,000 and 1,000,000 files (up to 100,000 bindings of 10 partitions), and the same with 2,000
partitions a binding, each operation in turn on every log. Prints tables for bench/README.md.
"""

import argparse
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from services import own_services  # isort: skip
from bookkeeping_load import GrownLog  # isort: skip

from tidemark.cassandra.driver import Session
from tidemark.cassandra.session import connect
from tidemark.consensus.lightweight import LightweightConsensus, create_schema
from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Consensus
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.delivery.deliver import deliver_to
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.status import read_orphan_status
from tidemark.log.model.binding import Binding
from tidemark.log.publish import publish
from tidemark.writers.files.kind import FilesDeclaration
from tidemark.writers.files.writer import FilesWriter

SEGMENT_BYTES = 10**9
NARROW, WIDE = 10, 2_000
SIZES = {NARROW: (1, 1_000, 100_000), WIDE: (1, 5, 500)}
"""The number of bindings by the number of partitions."""
ROUNDS = {NARROW: 41, WIDE: 7}
"""Enough bindings of the narrow log to close two segments."""


@dataclass
class Measured:
    """The seconds of each operation on one log."""

    log: GrownLog
    folder: str
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.positions = Positions(self.log.consensus, self.log.name)
        declared = FilesDeclaration(name="archive", kind="files", path=f"{self.folder}/archive")
        self.writer = FilesWriter(self.log.name, declared, self.log.root)

    def register(self) -> None:
        """A writer that is at the log's end."""
        end = self.log.control.log_head().end
        log = PublishedLog.open(self.log.control, self.log.root)
        deliver_to(
            self.writer,
            log,
            self.positions,
            "bench",
            write_parts_here,
            limit=10**9,
            reload=lambda: self.positions.load("archive"),
            start=end,
        )

    def go_round(self) -> None:
        binding = self.log.capture_next()
        self.time("publish", lambda: self.publish(binding))
        self.time("open", lambda: PublishedLog.open(self.log.control, self.log.root))
        self.time("status", lambda: read_orphan_status(self.log.name, self.log.consensus))
        self.time("deliver", self.deliver)

    def publish(self, binding: Binding) -> None:
        publish(self.log.control, self.log.folder, binding, SEGMENT_BYTES, binding.t)

    def deliver(self) -> None:
        log = PublishedLog.open(self.log.control, self.log.root)
        done = deliver_to(
            self.writer,
            log,
            self.positions,
            "bench",
            write_parts_here,
            limit=10**9,
            reload=lambda: self.positions.load("archive"),
        )
        assert done.position == log.end, done

    def time(self, what: str, act: Callable[[], object]) -> None:
        began = time.perf_counter()
        act()
        self.seconds.setdefault(what, []).append(time.perf_counter() - began)


def measure(partitions: int, consensus: Consensus, session: Session | None, sizes: Sequence[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        logs = []
        for bindings in sizes:
            name = f"bench-{partitions}-{bindings}"
            log = GrownLog(name, partitions, bindings, consensus, f"{folder}/{name}", session)
            began = time.monotonic()
            log.grow()
            print(f"{name}: {log.files:,} files made in {time.monotonic() - began:.0f} s", flush=True)
            logs.append(Measured(log, f"{folder}/{name}"))
        for one in logs:
            one.register()
            one.go_round()
            one.seconds.clear()  # the first round opens connections and compiles
        for _ in range(ROUNDS[partitions]):
            for one in logs:
                one.go_round()
        report(partitions, logs)


def report(partitions: int, logs: Sequence[Measured]) -> None:
    columns = [f"{one.log.files:,} files, {one.log.bindings:,} bindings" for one in logs]
    print(
        f"\n| {partitions:,} partitions a binding, ms (median) | {' | '.join(columns)} | largest / smallest |"
    )
    print(f"|---|{'---|' * (len(logs) + 1)}")
    for what in logs[0].seconds:
        found = [1_000 * statistics.median(one.seconds[what]) for one in logs]
        cells = " | ".join(f"{one:,.1f}" for one in found)
        print(f"| {what} | {cells} | {found[-1] / found[0]:.2f} |")
    sizes, lines = [], []
    for one in logs:
        head = one.log.control.log_head()
        assert head.manifest is not None
        sizes.append(f"{Path(one.log.root, head.manifest).stat().st_size / 1000:,.0f} kB")
        lines.append(str(len(PublishedLog.open(one.log.control, one.log.root).manifest.closed)))
    print(f"| manifest at the end | {' | '.join(sizes)} | |")
    print(f"| its lines | {' | '.join(lines)} | |\n", flush=True)


@contextmanager
def control_plane(in_memory: bool) -> Iterator[tuple[Consensus, Session | None]]:
    if in_memory:
        yield MemoryConsensus(), None
        return
    with own_services(services=("cassandra",)) as own:
        session = connect(own.cassandra)
        create_schema(session, own.cassandra.control_replication)
        yield LightweightConsensus(session), session


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", action="store_true", help="a control plane in memory")
    parser.add_argument("--partitions", type=int, choices=list(SIZES), action="append")
    parser.add_argument("--sizes", type=int, nargs="+", help="other numbers of bindings")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with control_plane(arguments.memory) as (consensus, session):
        for partitions in arguments.partitions or SIZES:
            measure(partitions, consensus, session, arguments.sizes or SIZES[partitions])


if __name__ == "__main__":
    sys.exit(main())
