"""Processes of ``bench/oplog.py``: each load has its own, and so an interpreter of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def started(script: str, *arguments: object, talks: bool = False) -> "subprocess.Popen[str]":
    """A script of this folder, started. ``talks``: it is told something by its standard input."""
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    entry = subprocess.PIPE if talks else subprocess.DEVNULL
    return subprocess.Popen(command, stdin=entry, stdout=subprocess.PIPE, text=True)


def answer_of(process: "subprocess.Popen[str]") -> Any:
    """The line that it ends with."""
    said, _ = process.communicate(timeout=600)
    if process.returncode:
        sys.exit(f"{process.args} ended with {process.returncode}")
    return json.loads(said)
