"""Checks that a path means the same folder for this process and for the engine.

A Spark Connect server may run on another machine, or in a container with other mounts. Then it would write
files of the log where no reader looks for them. This process writes a small file that the engine must find,
and the engine writes one that this process must find. What was found once is remembered in the session, for
this folder: another one that is mounted in its place is checked again.
Spark itself reads and writes: its Python processes take seconds to start, and a capture needs none.
"""

import socket
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from tidemark.log.files.folder import Folder
from tidemark.log.files.folder_id import folder_id
from tidemark.spark.engine import EngineKind, OpenEngine, engine_error
from tidemark.spark.errors import PathNotShared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AREA = "engine"
_OURS = "ours"
_THEIRS = "theirs"
_SUFFIX = ".txt"


def check_shared_path(engine: OpenEngine, pipeline: str, path: str) -> None:
    """Refuse a Connect server that does not see this process's files under ``path``, or it not theirs.

    Raises ``PathNotShared``. An application started for this work is not checked: it always was where its
    user configured it to be.
    """
    if engine.kind is not EngineKind.CONNECT:
        return
    folder = Folder(pipeline, path)
    seen = f"{socket.gethostname()} {path} {folder_id(folder)}"
    key = f"tidemark.shared.{sha256(seen.encode()).hexdigest()[:16]}"
    if engine.spark.conf.get(key, "") == path:
        return
    area = folder.new_area(AREA)
    try:
        folder.write_once(f"{area}/{_OURS}{_SUFFIX}", area.encode(), AREA)
        if problem := _problem(engine, folder, area):
            raise PathNotShared(engine.address, pipeline, path, problem)
    finally:
        with suppress(OSError):
            folder.remove_area(area)
    engine.spark.conf.set(key, path)


def _problem(engine: OpenEngine, folder: Folder, area: str) -> str:
    """What keeps the engine and this process from seeing each other's files; empty if nothing."""
    from pyspark.errors import PySparkException

    ours, theirs = folder.address(f"{area}/{_OURS}{_SUFFIX}"), folder.address(f"{area}/{_THEIRS}")
    try:
        if not _sees(engine.spark, ours):
            return "it does not see a file there that this process has just written"
        engine.spark.range(1).selectExpr("string(id)").write.text(theirs)
    except PySparkException as error:
        if lost := engine_error(error, engine.address):
            raise lost from error
        return f"it cannot write there ({str(error).splitlines()[0]})"
    if not folder.list_files(f"{area}/{_THEIRS}", _SUFFIX):
        return "it has written a file there that this process does not see"
    return ""


def _sees(spark: "SparkSession", address: str) -> bool:
    """Whether the engine can read a file."""
    from pyspark.errors import AnalysisException

    try:
        return bool(spark.read.text(address).collect())
    except AnalysisException:
        return False
