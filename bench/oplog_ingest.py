"""The agent's ingest: by UDP at a rate with no loss, as fast as it goes beside a bare loop, and by HTTP."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import numpy as np
import psutil

from oplog_agent import TOPIC, Cost, RunningAgent, running_agent  # isort: skip
from oplog_processes import answer_of, started  # isort: skip
from oplog_topic import WatchedTopic, create_topic  # isort: skip
from tidemark.connections import KafkaConnection

BARE = "oplog-bare"
LINES = 1_000
PROBES = 20
"""Requests a second beside the load by UDP."""
WARM_UP = 100_000


@dataclass(frozen=True)
class Speed:
    """Operations as fast as they are taken.

    Attributes:
        rate: Operations a second, from the first until Kafka had them all.
        cpu: Microseconds of the receiver for each.
        lost: How many are not in the topic.
    """

    rate: float
    cpu: float
    lost: int


@contextmanager
def bare_loop(kafka: KafkaConnection) -> Iterator[tuple[int, psutil.Process]]:
    """The bare loop; yields its port and its process."""
    process = started("oplog_bare_ingest.py", kafka.servers, BARE)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline()), psutil.Process(process.pid)
    finally:
        process.terminate()
        assert process.wait(90) == 0


def as_taken(port: int, process: psutil.Process, topic: WatchedTopic, count: int) -> Speed:
    """Send as fast as the receiver takes."""
    before, cost, began = topic.ends(), Cost.of([process]), monotonic()
    sender = started("oplog_udp_load.py", "--port", port, "--as-taken", count)
    found = topic.wait_for(before, count)
    seconds, used = monotonic() - began, Cost.of([process])
    sent = answer_of(sender)["sent"]
    return Speed(count / seconds, (used.cpu - cost.cpu) / count * 1e6, sent - found)


def at_rate(agent: RunningAgent, topic: WatchedTopic, rate: int, seconds: float) -> None:
    """Send at a rate, with single requests by HTTP beside it; print what became of all."""
    before, ends, cost = agent.settled(), topic.ends(), agent.cost
    prober = started("oplog_http_load.py", "--port", agent.port, "--rate", PROBES, "--seconds", seconds)
    sender = answer_of(
        started("oplog_udp_load.py", "--port", agent.port, "--rate", rate, "--seconds", seconds)
    )
    answered = answer_of(prober)["ms"]
    after, used = agent.settled(), agent.cost
    sent, probes = sender["sent"], len(answered)

    def since(name: str) -> int:
        return int(after[name]) - int(before[name])

    last = topic.ends()
    took = topic.milliseconds(ends, last)
    p50, p99, most = np.percentile(took, [50, 99, 100])
    http50, http99 = np.percentile(answered, [50, 99])
    drops = since("udp_kernel_drops")
    discarded, failed = since("events_discarded"), since("events_failed")
    lost = sent + probes - last.records_since(ends)
    cpu = (used.cpu - cost.cpu) / sender["seconds"] * 100
    print(
        f"| {sent / sender['seconds']:,.0f} | {sent:,} | {drops:,} | {discarded + failed:,} | {lost:,} | "
        f"{p50:.0f} and {p99:.0f} (most {most:.0f}) | {http50:.1f} and {http99:.1f} | {cpu:.0f} |",
        flush=True,
    )


def measure_ingest(
    kafka: KafkaConnection, folder: Path, rates: Sequence[int], seconds: float, count: int
) -> None:
    """Print the tables of ingest."""
    create_topic(kafka, BARE)
    topic, bare_topic = WatchedTopic(kafka, TOPIC), WatchedTopic(kafka, BARE)
    with running_agent(folder, "--ingest-only") as agent:
        as_taken(agent.port, agent.process, topic, min(WARM_UP, count))
        print("\n| UDP, operations/s | sent | dropped by the kernel | discarded or failed | lost ", end="")
        print("| ms to Kafka, p50 and p99 | 204 by HTTP beside it, p50 and p99 ms | CPU of the agent, % |")
        print("|---|---|---|---|---|---|---|---|")
        for rate in rates:
            at_rate(agent, topic, rate, seconds)
        with bare_loop(kafka) as (port, process):
            as_taken(port, process, bare_topic, min(WARM_UP, count))
            found: dict[str, list[Speed]] = {"bare loop": [], "agent": []}
            ways: dict[str, Callable[[], Speed]] = {
                "bare loop": lambda: as_taken(port, process, bare_topic, count),
                "agent": lambda: as_taken(agent.port, agent.process, topic, count),
            }
            for _ in range(3):
                for name, way in ways.items():
                    found[name].append(way())
        print(f"\n| {count:,} operations by UDP, as fast as they are taken | operations/s ", end="")
        print("| of the bare loop | CPU of the receiver, µs each | lost |\n|---|---|---|---|---|")
        base = statistics.median(one.rate for one in found["bare loop"])
        for name, speeds in found.items():
            rate = statistics.median(one.rate for one in speeds)
            cpu, lost = statistics.median(one.cpu for one in speeds), sum(one.lost for one in speeds)
            print(f"| {name} | {rate:,.0f} | {rate / base:.2f} | {cpu:.1f} | {lost:,} |", flush=True)
        flooded = answer_of(
            started("oplog_http_load.py", "--port", agent.port, "--lines", LINES, "--seconds", seconds)
        )
        print(f"\nHTTP, {LINES:,} lines a request on 4 connections: ", end="")
        print(f"{flooded['sent'] / flooded['seconds']:,.0f} operations/s until 204.")
    topic.close()
    bare_topic.close()
