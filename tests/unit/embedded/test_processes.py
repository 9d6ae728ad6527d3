"""Processes are found again and ended completely; what is not ours is never touched."""

import subprocess
import threading
from pathlib import Path

import psutil
import pytest

from tidemark.embedded.processes import TOKEN, PidFile, family, start, stop, tail
from tidemark.embedded.services.service import Program

pytestmark = [pytest.mark.unit, pytest.mark.usefixtures("nothing_left")]


@pytest.fixture
def run(settings) -> Path:
    (settings.home / "run").mkdir(parents=True)
    return settings.home / "run"


def shell(name: str, script: str, cwd: Path) -> Program:
    return Program(name, name, ("/bin/sh", "-c", script), {"PATH": "/usr/bin:/bin"}, cwd, None)


def wait_for(condition):
    for _ in range(500):
        if value := condition():
            return value
        threading.Event().wait(0.01)
    raise AssertionError("it did not happen")


@pytest.fixture
def stranger():
    """A process that is not ours."""
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_a_started_program_runs_in_a_session_of_its_own_and_is_recorded(run):
    record = start(shell("x", "echo hello; exec sleep 60", run), run, run / "x.log")
    assert PidFile.read(run, "x") == record
    assert record.process().pid == record.pid
    wait_for(lambda: (run / "x.log").read_text() == "hello\n")
    assert psutil.Process(record.pid).environ()[TOKEN] == record.token


def test_a_pid_file_whose_process_is_gone_means_nothing_runs(run):
    ended = subprocess.Popen(["true"])
    ended.wait()
    record = PidFile("x", ended.pid, 1.0, "token", None, 0)
    record.write(run)
    assert record.process() is None
    assert stop([record], run) == 0
    assert PidFile.read(run, "x") is None


def test_a_pid_given_to_another_process_is_never_killed(run, stranger):
    record = PidFile("x", stranger.pid, psutil.Process(stranger.pid).create_time() - 5, "token", None, 0)
    record.write(run)
    assert record.process() is None
    assert family([record]) == []
    assert stop([record], run) == 0
    assert stranger.poll() is None


def test_a_torn_pid_file_counts_as_none(run):
    (run / "x.pid").write_text('{"name": "x", "pid"')
    assert PidFile.read(run, "x") is None


def test_an_ended_child_is_not_taken_for_running(run):
    record = start(shell("x", "exit 3", run), run, run / "x.log")
    wait_for(lambda: record.process() is None)


def test_stopping_ends_children_also_those_that_went_into_a_session_of_their_own(run, stranger):
    script = "setsid sleep 61 & sleep 62 & setsid sh -c 'sleep 63 & sleep 64' & wait"
    record = start(shell("x", script, run), run, run / "x.log")
    members = wait_for(lambda: len(found := family([record])) >= 6 and found)
    assert stop([record], run) == len(members)
    assert [process.pid for process in members if process.is_running() and process.status() != "zombie"] == []
    assert stranger.poll() is None


def test_what_a_killed_process_left_behind_is_found_by_its_token(run):
    record = start(shell("x", "setsid sleep 61 & wait", run), run, run / "x.log")
    # `setsid` has the same arguments until it has become `sleep`.
    wait_for(lambda: any(process.cmdline()[:1] == ["sleep"] for process in family([record])))
    psutil.Process(record.pid).kill()
    wait_for(lambda: record.process() is None)
    orphan = wait_for(lambda: family([record]))
    assert [process.cmdline()[0] for process in orphan] == ["sleep"]
    assert stop([record], run) == 1
    assert family([record]) == []


def test_a_program_that_ignores_the_gentle_signal_is_killed(run):
    record = start(shell("x", "trap '' TERM; while true; do sleep 0.01; done", run), run, run / "x.log")
    wait_for(lambda: psutil.Process(record.pid).children())
    stop([record], run, patience=0.1)
    assert record.process() is None


def test_a_start_that_was_interrupted_before_the_pid_was_known_is_still_found(run):
    record = start(shell("x", "exec sleep 60", run), run, run / "x.log")
    unknown = PidFile("x", 0, 0.0, record.token, None, 0)
    # While one program replaces the other, its environment cannot be seen for a moment.
    wait_for(lambda: psutil.Process(record.pid).name() == "sleep")
    assert [process.pid for process in wait_for(lambda: family([unknown]))] == [record.pid]


def test_a_log_that_has_grown_large_is_put_aside_at_the_next_start(run, monkeypatch):
    monkeypatch.setattr("tidemark.embedded.processes.LOG_LIMIT", 10)
    (run / "x.log").write_text("a long old story\n")
    record = start(shell("x", "echo new", run), run, run / "x.log")
    wait_for(lambda: (run / "x.log").read_text() == "new\n")
    assert (run / "x.log.1").read_text() == "a long old story\n"
    assert record.log_start == 0


def test_the_last_lines_of_a_log_do_not_reach_back_before_the_start(tmp_path):
    log = tmp_path / "x.log"
    log.write_text("old\n")
    begin = log.stat().st_size
    with log.open("a") as file:
        file.writelines(f"line {number}\n" for number in range(50_000))
    assert tail(log, 2, begin) == ["line 49998", "line 49999"]
    assert tail(log, 60_000, begin)[0] == "line 0"
    assert tail(log, 60_000)[0] == "old"
    assert tail(tmp_path / "none.log", 5) == []
