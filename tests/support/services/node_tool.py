"""Cassandra's own maintenance, for a node without a JMX port: flush and compaction of one keyspace.

The embedded Cassandra has no JMX port. Any Java can be asked through its attach socket to open one, on the
loopback address and for as long as it is needed; ``nodetool`` is in Cassandra's jars.
"""

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import wait_until

from tidemark.embedded.jars.fetch import jars_folder
from tidemark.embedded.java import find_java
from tidemark.embedded.ports import LOOPBACK, free_port, holder
from tidemark.settings import ROOT, Settings

OPTIONS = ROOT / "include" / "tidemark" / "embedded" / "templates" / "cassandra-jvm.options"


def flush_and_compact(cassandra_port: int, keyspace: str) -> None:
    """Bring everything a keyspace has into one file per table, without the tombstones that may go."""
    pid, _ = holder(cassandra_port)
    assert pid is not None
    with open_jmx(pid) as port:
        for command in ("flush", "compact"):
            nodetool(port, command, keyspace)


@contextmanager
def open_jmx(pid: int) -> Iterator[int]:
    """A port of this Java's management agent."""
    port = free_port()
    options = {"port": port, "rmi.port": port, "host": LOOPBACK, "authenticate": "false", "ssl": "false"}
    answer = ask_java(
        pid, "ManagementAgent.start", *(f"jmxremote.{name}={value}" for name, value in options.items())
    )
    assert answer.startswith("0\n"), answer
    try:
        yield port
    finally:
        ask_java(pid, "ManagementAgent.stop")


def ask_java(pid: int, *command: str) -> str:
    """What a Java process answers to a diagnostic command; ``0`` in the first line when it went well."""
    door = Path(f"/tmp/.java_pid{pid}")  # there, whatever the environment says
    if not door.exists():
        knock = Path(f"/proc/{pid}/cwd/.attach_pid{pid}")
        knock.touch()
        try:
            os.kill(pid, signal.SIGQUIT)
            wait_until(door.exists, 10, "the attach socket of Cassandra")
        finally:
            knock.unlink()
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(door))
        asking.sendall(b"".join(part.encode() + b"\0" for part in ("1", "jcmd", " ".join(command), "", "")))
        answer = b""
        while data := asking.recv(4096):
            answer += data
    return answer.decode()


def nodetool(port: int, *command: str) -> None:
    """Cassandra's command."""
    java, jars = find_java(os.environ), jars_folder(Settings.read())
    modules = [line for line in OPTIONS.read_text().splitlines() if line.startswith("--add-")]
    with tempfile.TemporaryDirectory() as home:  # it keeps a history there
        options = [*modules, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Duser.home={home}"]
        tool = ["-cp", jars.classpath("cassandra"), "org.apache.cassandra.tools.NodeTool"]
        done = subprocess.run(
            [str(java.path), *options, *tool, "-h", LOOPBACK, "-p", str(port), *command],
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stdout + done.stderr
