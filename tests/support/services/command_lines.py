"""The command lines of all processes while something runs: every user of the machine can see them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil


@contextmanager
def command_lines() -> Iterator[set[str]]:
    """Looks at every process of the machine until the block ends; what it saw."""
    seen: set[str] = set()
    stopped = threading.Event()

    def look() -> None:
        while not stopped.wait(0.1):
            for process in psutil.process_iter(["cmdline"]):
                seen.add(" ".join(process.info["cmdline"] or []))

    watch = threading.Thread(target=look, daemon=True)
    watch.start()
    try:
        yield seen
    finally:
        stopped.set()
        watch.join()
