"""The agent's streams: clients that are told of every operation, beside a peer; clients that come and go."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from oplog_agent import Cost, running_agent  # isort: skip
from oplog_peer import MISSING, NAME, find_nginx, running_peer  # isort: skip
from oplog_processes import answer_of, started  # isort: skip

WARM_UP = 100
SETTLED = 2.0
"""Seconds in which a server does what it still has to do."""


class Served(Protocol):
    """A server of streams."""

    port: int

    @property
    def cost(self) -> Cost:
        """What it has used until now."""


class Group:
    """Clients that stay connected."""

    def __init__(self, server: Served, count: int, stream: Sequence[str]) -> None:
        self._process = started(
            "oplog_clients.py", "stay", "--port", server.port, "--clients", count, *stream, talks=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "connected\n", "the clients do not connect"
        time.sleep(SETTLED)

    def leave(self) -> Any:
        """Disconnect all; what they have received."""
        assert self._process.stdin is not None
        self._process.stdin.write("stop\n")
        self._process.stdin.flush()
        return answer_of(self._process)


def fan_out(
    name: str,
    server: Served,
    clients: int,
    rates: Sequence[float],
    seconds: float,
    stream: Sequence[str] = (),
    way: Sequence[str] = (),
) -> None:
    """Connect clients, send at every rate, and print a line for each."""
    Group(server, WARM_UP, stream).leave()
    send(server, 50, 2, way)
    before = server.cost
    group = Group(server, clients, stream)
    idle = (server.cost.memory - before.memory) / clients
    for number, rate in enumerate(rates):
        if number:
            group = Group(server, clients, stream)
        begun = server.cost
        sent = send(server, rate, seconds, way)
        time.sleep(SETTLED)
        used, got = server.cost, group.leave()
        assert got["ended"] == 0, got
        missed = sent["sent"] * clients - got["received"]
        p50, p99, most = got["ms"]
        cpu = (used.cpu - begun.cpu) / (got["received"] or 1) * 1e6
        print(
            f"| {name} | {clients:,} × {rate:,.0f} | {p50:.0f} | {p99:.0f} | {most:.0f} | {missed:,} | "
            f"{used.cpu - begun.cpu:.1f} | {cpu:.1f} | {idle / 1e3:.1f} | {used.memory / 1e6:.0f} |",
            flush=True,
        )


def send(server: Served, rate: float, seconds: float, way: Sequence[str]) -> Any:
    """Send evenly, and wait for the sender's end."""
    options = ("--port", server.port, "--rate", rate, "--seconds", seconds, *way)
    return answer_of(started("oplog_paced_sender.py", *options))


def measure_fanout(folder: Path, clients: int, rates: Sequence[float], seconds: float) -> None:
    """Print the table of streams, beside the peer where it is installed."""
    print("\n| | clients × operations/s | p50 ms | p99 ms | most ms | missed | CPU s ", end="")
    print(
        "| CPU µs an event | kB an idle client | MB at the end |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    with running_agent(folder) as agent:
        fan_out("agent", agent, clients, rates, seconds)
        found = agent.status()
    if find_nginx() is None:
        print(MISSING)
        return
    with running_peer(folder) as peer:
        stream = ("--path", "/sub", "--first", "HTTP/1.1 200")
        fan_out(NAME, peer, clients, rates, seconds, stream, ("--path", "/pub"))
    events, streams = found["events_sent"], found["connections"]
    print(f"\nThe agent's own figures: {events:,} events to {streams:,} connections.")


def measure_connections(folder: Path, count: int, idle: int) -> None:
    """Connect and disconnect again and again; print what is left. Then many idle clients."""
    with running_agent(folder) as agent:
        turns = []
        for cycles in (count // 5, count, count):
            seconds = answer_of(
                started("oplog_clients.py", "cycle", "--port", agent.port, "--clients", cycles)
            )["seconds"]
            time.sleep(SETTLED)
            turns.append((cycles, seconds, agent.cost, agent.status()))
        print("\n| connect and disconnect, 50 at once | per second | MB | open files | clients |")
        print("|---|---|---|---|---|")
        for cycles, seconds, cost, status in turns:
            print(
                f"| {cycles:,} times | {cycles / seconds:,.0f} | {cost.memory / 1e6:.1f} | {cost.files} | "
                f"{status['clients']} |"
            )
        before = agent.cost
        group = Group(agent, idle, ())
        after = agent.cost
        group.leave()
        print(f"\n{idle:,} idle clients: {(after.memory - before.memory) / idle / 1e3:.1f} kB each.")
