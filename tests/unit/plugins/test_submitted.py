"""The end of an application that spark-submit has started: its Python process is asked, then killed."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.support.waiting import wait_until

pytestmark = pytest.mark.unit

SUBMIT = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, *sys.argv[1:]]))"
"""As spark-submit does: starts the application and ends with its code."""
PROMPT = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: (print("gave everything back", flush=True), sys.exit(3)))
print("ready", flush=True)
signal.pause()
"""
DEAF = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.fixture
def mark(tmp_path: Path) -> str:
    return str(tmp_path / "summary.json")


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        if process.poll() is None:
            for own in psutil.Process(process.pid).children():
                own.kill()
            process.kill()
        process.communicate()


def submit(
    started: list[subprocess.Popen[str]], application: str, mark: str
) -> tuple[subprocess.Popen[str], psutil.Process]:
    """The process that was started, and the application's own."""
    command = [sys.executable, "-c", SUBMIT, "-c", application, "--summary", mark]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    started.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    (own,) = psutil.Process(process.pid).children()
    return process, own


def test_an_application_that_is_asked_ends_by_itself(started, mark):
    from tidemark_airflow.submitted import end_application

    process, own = submit(started, PROMPT, mark)
    end_application(mark, process.pid, patience=30)
    assert process.stdout.read() == "gave everything back\n"
    assert (process.wait(), own.is_running()) == (3, False)


def test_an_application_that_does_not_end_is_killed_with_what_waits_for_it(started, mark):
    from tidemark_airflow.submitted import end_application

    process, own = submit(started, DEAF, mark)
    end_application(mark, process.pid, patience=0.2)
    assert process.wait() == -9
    wait_until(lambda: not own.is_running() or own.status() == psutil.STATUS_ZOMBIE, 10, "its end")


def test_where_nothing_is_started_yet_spark_submit_itself_is_asked(started, mark):
    from tidemark_airflow.submitted import end_application

    command = [sys.executable, "-c", PROMPT, "--summary", mark]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    started.append(process)
    assert process.stdout.readline() == "ready\n"
    end_application(mark, process.pid, patience=30)
    assert process.wait() == 3


def test_other_applications_are_left_alone(started, mark):
    from tidemark_airflow.submitted import end_application

    _, own = submit(started, PROMPT, mark)
    end_application(f"{mark}.other", None)
    assert own.is_running()
