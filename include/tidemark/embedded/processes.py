"""Processes that outlive the command that started them, and are identified reliably later.

A pid alone is not an identity. It is recorded with the process's creation time, and every process has a token
in its environment that its descendants inherit. A process that matches neither is never signalled.
"""

import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil

from tidemark.embedded.errors import StillRunning
from tidemark.embedded.files import write_atomically
from tidemark.embedded.services.service import Program

TOKEN = "TIDEMARK_PROCESS"
LOG_LIMIT = 20_000_000
"""A log larger than this is rotated when its service starts."""

_children: list[subprocess.Popen[bytes]] = []
"""Children of this process, kept in order to reap them."""


@dataclass(frozen=True, slots=True)
class PidFile:
    """The pid file of a program: its process, and the port on which it answers."""

    name: str
    pid: int
    created: float
    token: str
    port: int | None
    log_start: int

    @classmethod
    def read(cls, run: Path, name: str) -> "PidFile | None":
        """Read the pid file of a program; None if it was stopped or never started, or the file is damaged."""
        try:
            return cls(**json.loads((run / f"{name}.pid").read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def write(self, run: Path) -> None:
        """Write the file."""
        write_atomically(run / f"{self.name}.pid", json.dumps(asdict(self)) + "\n")

    def remove(self, run: Path) -> None:
        """Remove the file of a stopped program."""
        (run / f"{self.name}.pid").unlink(missing_ok=True)

    def process(self) -> psutil.Process | None:
        """The process, if it runs."""
        _reap()
        try:
            process = self.trace()
            return process if process and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.Error:
            return None

    def trace(self) -> psutil.Process | None:
        """The process, also while it exits; never another process that got the same pid."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.created) < 1.0 or _token(process) == self.token
            return process if same else None
        except psutil.Error:
            return None


def start(program: Program, run: Path, log: Path) -> PidFile:
    """Start a program in a session of its own, its output going to ``log``, and record it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LOG_LIMIT:
        log.replace(log.with_suffix(".log.1"))
    position = log.stat().st_size if log.exists() else 0
    record = PidFile(program.name, 0, 0.0, uuid.uuid4().hex, program.port, position)
    record.write(run)  # before the process exists, so that its token is known if this is interrupted
    with log.open("ab") as output:
        child = subprocess.Popen(
            program.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=program.cwd,
            # SPT_NOENV: a program that sets its process title must not overwrite the token
            env={**program.environ, TOKEN: record.token, "SPT_NOENV": "1"},
            start_new_session=True,
        )
    _children.append(child)
    try:
        record = replace(record, pid=child.pid, created=psutil.Process(child.pid).create_time())
    except psutil.NoSuchProcess:
        record = replace(record, pid=child.pid)  # it ended at once; the caller treats it as died
    record.write(run)
    return record


def family(records: Iterable[PidFile]) -> list[psutil.Process]:
    """All living processes of these programs and their descendants, by ancestry, session and token."""
    records = list(records)
    tokens = {record.token for record in records}
    leaders = {process.pid: process for record in records if (process := record.process())}
    found = dict(leaders)
    for leader in leaders.values():
        try:
            found.update({child.pid: child for child in leader.children(recursive=True)})
        except psutil.Error:
            continue
    for process in psutil.process_iter():
        if process.pid not in found and (_session(process.pid) in leaders or _token(process) in tokens):
            found[process.pid] = process
    return [process for process in found.values() if process.pid != os.getpid() and _lives(process)]


def stop(records: Sequence[PidFile], run: Path, patience: float = 20.0) -> int:
    """Stop these programs with their descendants, by SIGTERM, then SIGKILL; returns how many processes."""
    members = family(records)
    leaders = [process for record in records if (process := record.process())]
    _signal(leaders, signal.SIGTERM)
    _wait(leaders, patience)
    orphans = family(records)
    _signal(orphans, signal.SIGTERM)  # descendants that a leader left behind when it ended or was killed
    _wait(orphans, min(patience, 3.0))
    deadline = time.monotonic() + 10.0
    while stubborn := family(records):  # again: one may have started another before it was killed
        if time.monotonic() > deadline:
            raise StillRunning([process.pid for process in stubborn])
        _signal(stubborn, signal.SIGKILL)
        _wait(stubborn, 1.0)
    _wait([process for record in records if (process := record.trace())], 10.0)
    for record in records:
        record.remove(run)
    return len(members)


def tail(log: Path, lines: int, start_at: int = 0, end_at: int | None = None) -> list[str]:
    """The last lines of a log, between the positions ``start_at`` and ``end_at``."""
    if not log.exists():
        return []
    with log.open("rb") as file:
        end = file.seek(0, os.SEEK_END) if end_at is None else end_at
        begin = start_at if start_at <= end else 0
        found, text = end, b""
        while found > begin and text.count(b"\n") <= lines:
            step = min(65536, found - begin)
            found = file.seek(found - step)
            text = file.read(step) + text
    return text.decode(errors="replace").splitlines()[-lines:]


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        try:
            process.send_signal(number)  # psutil checks that the pid was not reused
        except psutil.NoSuchProcess:
            continue


def _wait(processes: Iterable[psutil.Process], seconds: float) -> None:
    """Wait until the processes have ended. psutil's own function also waits until their parent reaps them."""
    deadline = time.monotonic() + seconds
    while any(_lives(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(0.02)
        _reap()


def _lives(process: psutil.Process) -> bool:
    """Whether any thread is left: a killed process keeps its ports until its last thread has ended."""
    try:
        return process.is_running() and (
            process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1
        )
    except psutil.Error:
        return False


def _token(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(TOKEN)
    except (psutil.Error, OSError):  # another user's, or just gone
        return None


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _reap() -> None:
    """Reap ended children."""
    _children[:] = [child for child in _children if child.poll() is None]
