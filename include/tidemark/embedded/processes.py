"""Processes that outlive the command that started them, and are found again without mistake.

A pid alone is not an identity: it is recorded together with the process's creation time, and every process
gets a token in its environment that all its descendants inherit. Nothing is signalled that matches neither.
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
"""Bytes after which a log is put aside when its service starts."""

_children: list[subprocess.Popen[bytes]] = []
"""Children of this very process, kept so that they are reaped when they end."""


@dataclass(frozen=True, slots=True)
class PidFile:
    """A pid file: which process was started for a program, and on which port it answers."""

    name: str
    pid: int
    created: float
    token: str
    port: int | None
    log_start: int

    @classmethod
    def read(cls, run: Path, name: str) -> "PidFile | None":
        """The record of a program that was started and not stopped since; a torn file counts as none."""
        try:
            return cls(**json.loads((run / f"{name}.pid").read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def write(self, run: Path) -> None:
        """Keep it."""
        write_atomically(run / f"{self.name}.pid", json.dumps(asdict(self)) + "\n")

    def remove(self, run: Path) -> None:
        """Forget it: the program is stopped."""
        (run / f"{self.name}.pid").unlink(missing_ok=True)

    def process(self) -> psutil.Process | None:
        """The process itself if it runs."""
        _reap()
        try:
            process = self.trace()
            return process if process and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.Error:
            return None

    def trace(self) -> psutil.Process | None:
        """The process, also when it is just ending; never another one that was given the same pid."""
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
    record.write(run)  # before it exists: whatever interrupts us here, its token leads to it
    with log.open("ab") as output:
        child = subprocess.Popen(
            program.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=program.cwd,
            # SPT_NOENV: a program that sets its own title must not overwrite the environment with our token
            env={**program.environ, TOKEN: record.token, "SPT_NOENV": "1"},
            start_new_session=True,
        )
    _children.append(child)
    try:
        record = replace(record, pid=child.pid, created=psutil.Process(child.pid).create_time())
    except psutil.NoSuchProcess:
        record = replace(record, pid=child.pid)  # ended at once: the caller sees it as died
    record.write(run)
    return record


def family(records: Iterable[PidFile]) -> list[psutil.Process]:
    """Every living process that these records or their descendants are: by ancestry, session and token."""
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
    """End these programs with all they started, gently first; returns how many processes there were."""
    members = family(records)
    leaders = [process for record in records if (process := record.process())]
    _signal(leaders, signal.SIGTERM)
    _wait(leaders, patience)
    orphans = family(records)
    _signal(orphans, signal.SIGTERM)  # what a leader left behind, or what became orphaned when it was killed
    _wait(orphans, min(patience, 3.0))
    deadline = time.monotonic() + 10.0
    while stubborn := family(records):  # again, because one may have started another before it was killed
        if time.monotonic() > deadline:
            raise StillRunning([process.pid for process in stubborn])
        _signal(stubborn, signal.SIGKILL)
        _wait(stubborn, 1.0)
    _wait([process for record in records if (process := record.trace())], 10.0)
    for record in records:
        record.remove(run)
    return len(members)


def tail(log: Path, lines: int, start_at: int = 0, end_at: int | None = None) -> list[str]:
    """The last lines of a log, none from before ``start_at`` or after ``end_at``."""
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
            process.send_signal(number)  # psutil checks that the pid was not recycled since it was looked up
        except psutil.NoSuchProcess:
            continue


def _wait(processes: Iterable[psutil.Process], seconds: float) -> None:
    """Until they have ended. Not psutil's own: that waits until whoever adopted them takes notice, too."""
    deadline = time.monotonic() + seconds
    while any(_lives(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(0.02)
        _reap()


def _lives(process: psutil.Process) -> bool:
    """Whether anything of it is left: a killed process keeps its ports until its last thread has ended."""
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
    """Take the exit codes of ended children, so that they do not stay as zombies."""
    _children[:] = [child for child in _children if child.poll() is None]
