"""Checks that a path means the same folder for this process and for the engine's tasks.

A Spark Connect server may run on another machine, or in a container with other mounts. Then tasks would write
files of the log where no reader looks for them. This process writes a small file that tasks must find, and
each task writes one that this process must find. What was found once is remembered in the session.
"""

import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256

import pyarrow as pa

from tidemark.errors import TidemarkError
from tidemark.log.files.folder import Folder
from tidemark.spark.engine import EngineKind, OpenEngine
from tidemark.spark.errors import PathNotShared

AREA = "engine"
_OURS = "ours"
_ANSWER = pa.schema([("id", pa.int64()), ("host", pa.string()), ("problem", pa.string())])


def check_shared_path(engine: OpenEngine, pipeline: str, path: str) -> None:
    """Refuse a Connect server whose tasks do not see this process's files under ``path``, or it not theirs.

    Raises ``PathNotShared``. An application started for this work is not checked: it always was where its
    user configured it to be.
    """
    if engine.kind is not EngineKind.CONNECT:
        return
    key = f"tidemark.shared.{sha256(f'{socket.gethostname()} {path}'.encode()).hexdigest()[:16]}"
    if engine.spark.conf.get(key, "") == path:
        return
    folder = Folder(pipeline, path)
    area = folder.new_area(AREA)
    try:
        folder.write_once(f"{area}/{_OURS}", area.encode(), AREA)
        answers = engine.spark.range(0, 2, 1, 2).mapInArrow(
            partial(answer_all, pipeline, path, area), "id long, host string, problem string"
        )
        for row in answers.collect():
            if problem := row.problem or _problem(folder, area, row.id):
                raise PathNotShared(engine.address, pipeline, path, row.host, problem)
    finally:
        with suppress(OSError):
            folder.remove_area(area)
    engine.spark.conf.set(key, path)


def answer_all(
    pipeline: str, path: str, area: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """In a task: look for the driver's file, and write one for the driver."""
    for batch in batches:
        for number in batch["id"].to_pylist():
            found = {
                "id": number,
                "host": socket.gethostname(),
                "problem": _answer(pipeline, path, area, number),
            }
            yield pa.RecordBatch.from_pylist([found], _ANSWER)


def _answer(pipeline: str, path: str, area: str, number: int) -> str:
    folder = Folder(pipeline, path)
    try:
        if not folder.exists(f"{area}/{_OURS}"):
            return "does not see a file there that this process has just written"
        folder.write_once(f"{area}/{number}", area.encode(), AREA)
    except (TidemarkError, OSError) as error:
        return f"cannot write there ({error})"
    return ""


def _problem(folder: Folder, area: str, number: int) -> str:
    """What is wrong with a task's file, seen from here; empty if nothing."""
    if folder.exists(f"{area}/{number}"):
        return ""
    return "has written a file there that this process does not see"
