"""The commit log as a DataFrame: the selected messages. Every file is verified before it is read."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.log.model.manifest import LogFile
from tidemark.log.read import Selection
from tidemark.spark.jobs.tasks import call_in_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_messages(spark: "SparkSession", selection: Selection) -> "DataFrame":
    """The selected messages. Raises an error that names the file where one is missing or damaged."""
    verify_files(spark, selection.pipeline, selection.root, selection.files)
    folder = LogFolder(selection.pipeline, selection.root)
    messages = read_parquet(spark, [folder.at(file) for file in selection.files])
    chosen = messages.where(f"id BETWEEN {selection.first_id} AND {selection.last_id}")
    if selection.t is not None:
        chosen = chosen.where(f"t = {selection.t}")
    if selection.namespaces:
        chosen = chosen.where(chosen.namespace.isin(list(selection.namespaces)))
    return chosen


def read_parquet(spark: "SparkSession", paths: Sequence[str]) -> "DataFrame":
    """The content of log files, unverified, with the log's columns. Empty where there are no paths."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(LOG_SCHEMA)
    if not paths:
        return spark.createDataFrame([], schema)
    # Spark treats a path as a glob pattern, which could match other files.
    return spark.read.schema(schema).parquet(*(re.sub(r"([\\{}\[\]*?])", r"\\\1", p) for p in paths))


def verify_files(spark: "SparkSession", pipeline: str, root: str, files: Sequence[LogFile]) -> None:
    """Compare every file with its digest, on the executors. Parquet readers detect only some damage."""
    call_in_tasks(spark, _Verifying(pipeline, root), files)


@dataclass(frozen=True)
class _Verifying:
    pipeline: str
    root: str

    def __call__(self, file: LogFile) -> None:
        LogFolder(self.pipeline, self.root).ensure_verified(file)
