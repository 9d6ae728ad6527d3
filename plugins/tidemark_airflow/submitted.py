"""Ends an application that spark-submit has started: it is asked first, and killed only after some seconds.

spark-submit is a JVM, and the application's own Python is a child of it that Airflow's hook does not know.
Killing the JVM leaves the Python process behind, with its leases. So the Python process gets the signal,
finishes what it is doing, and the JVM ends with it.
"""

import time
from contextlib import suppress

import psutil

ENDS_WITHIN = 4.0
"""Seconds. Airflow kills all processes of a task five seconds after its SIGTERM."""
LOOK_AGAIN = 0.05


def end_application(mark: str, submitted: int | None, patience: float = ENDS_WITHIN) -> None:
    """End the processes that have ``mark`` among their arguments, within ``patience`` seconds.

    ``submitted`` is the id of the process that waits for the others, spark-submit: it is asked only where
    there is no other one yet. What does not end in time is killed.
    """
    found = [
        process for process in psutil.process_iter(["cmdline"]) if mark in (process.info["cmdline"] or ())
    ]
    for process in [one for one in found if one.pid != submitted] or found:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    deadline = time.monotonic() + patience
    # Not by waiting for the processes: Airflow's hook wants the exit code of spark-submit.
    while any(_is_alive(process) for process in found) and time.monotonic() < deadline:
        time.sleep(LOOK_AGAIN)
    for process in found:
        if _is_alive(process):
            with suppress(psutil.NoSuchProcess):
                process.kill()


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
