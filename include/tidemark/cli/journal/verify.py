"""``tidemark journal verify``, ``diff`` and ``history``: a journal's tables compared and explained.

Single entities are read in this process; whole tables by Spark, on the pipeline's Connect server or in this
process.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tidemark.cli.open_pipeline import open_pipeline
from tidemark.cli.options import Json, PipelineName, print_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.app.open_pipeline import OpenPipeline

Writer = Annotated[str | None, typer.Argument(help="A journal writer; by default the only one.")]
Topic = Annotated[str | None, typer.Option(help="Only this topic.")]


def verify(
    pipeline: PipelineName,
    writer: Writer = None,
    entity: Annotated[list[str] | None, typer.Option(help="Only this key; may be repeated.")] = None,
    topic: Topic = None,
    from_t: Annotated[
        int | None, typer.Option(help="Entities touched by bindings from this time (µs).")
    ] = None,
    to_t: Annotated[int | None, typer.Option(help="And up to this time, inclusive.")] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="At most this many of these entities.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of the sample.")] = 0,
    most: Annotated[int, typer.Option(min=1, help="How many differences are shown.")] = 100,
    as_json: Json = False,
) -> None:
    """Verify the tables of a journal against the log. Exit code 1 if there are differences."""
    from tidemark.cli.output.verification import verification_table
    from tidemark.verification.journal.entities import verify_entities
    from tidemark.verification.selection import EntitySelection

    if entity and (from_t, to_t, sample) != (None, None, None):
        raise typer.BadParameter("goes with --topic only", param_hint="--entity")
    opened = open_pipeline(pipeline)
    journal = opened.journal(writer)
    if entity:
        with opened.log.held("journal verify") as log:
            found = verify_entities(journal, log, opened.positions, entity, topic, most)
    else:
        from tidemark.spark.jobs.verify import verify_with_spark

        topics = (topic,) if topic else ()
        selection = EntitySelection(topics=topics, from_t=from_t, to_t=to_t, sample=sample, seed=seed)
        with pipeline_spark(opened, "verify") as spark, opened.log.held("journal verify") as log:
            found = verify_with_spark(spark, journal, log, opened.positions, selection, most)
    if as_json:
        print_json(found.to_dict())
    else:
        Console().print(verification_table(found))
    raise typer.Exit(0 if found.is_clean else 1)


def diff(
    pipeline: PipelineName,
    keyspaces: Annotated[str, typer.Option(help="The old keyspace and the new one: a,b.")],
    most: Annotated[int, typer.Option(min=1, help="How many differences are shown.")] = 100,
    as_json: Json = False,
) -> None:
    """Compare two keyspaces of a pipeline. Exit code 0 if readers may be switched to the second."""
    from tidemark.cli.output.verification import diff_table
    from tidemark.spark.jobs.diff import diff_with_spark

    names = [name.strip() for name in keyspaces.split(",")]
    if len(names) != 2 or names[0] == names[1] or not all(names):
        raise typer.BadParameter("name two keyspaces, the old one first: a,b", param_hint="--keyspaces")
    opened = open_pipeline(pipeline)
    old, new = opened.journals_of(names)
    with pipeline_spark(opened, "diff") as spark, opened.log.held("journal diff") as log:
        found = diff_with_spark(spark, old, new, log, opened.positions, most)
    if as_json:
        print_json(found.to_dict())
    else:
        Console().print(diff_table(found))
    raise typer.Exit(0 if found.is_safe else 1)


def history(
    pipeline: PipelineName,
    entity: Annotated[str, typer.Argument(metavar="ENTITY", help="Its key.")],
    writer: Annotated[str | None, typer.Option(help="A journal writer; by default the only one.")] = None,
    topic: Topic = None,
    limit: Annotated[
        int, typer.Option(min=0, help="How many messages at most, the newest; 0 for all.")
    ] = 100,
    as_json: Json = False,
) -> None:
    """Show an entity's history: its messages, what readers see now, and why rows are hidden."""
    from tidemark.cli.output.verification import history_table
    from tidemark.journal_tables.reader import JournalReader
    from tidemark.verification.basis import read_basis
    from tidemark.verification.errors import NoSuchEntity
    from tidemark.verification.journal.history import read_histories

    opened = open_pipeline(pipeline)
    journal = opened.journal(writer)
    with opened.log.held("journal history") as log:
        basis, log = read_basis(journal, log, opened.positions)
        topics = basis.require_topics([topic] if topic else [])
        tables = JournalReader.open(journal.connection, journal.declared)
        found = list(read_histories(basis, log, tables, entity, topics, limit or None))
    if not found:
        raise NoSuchEntity(basis.pipeline, basis.writer, entity)
    if as_json:
        print_json([each.to_dict() for each in found])
    else:
        for each in found:
            Console().print(history_table(each))


@contextmanager
def pipeline_spark(opened: "OpenPipeline", application: str) -> "Iterator[SparkSession]":
    """A session on the pipeline's Connect server; with every other engine, Spark starts in this process."""
    from tidemark.cli.connections import look_up
    from tidemark.connections import BadConnection, SparkConnection
    from tidemark.spark import application as job

    name = opened.pipeline.spark.connection
    try:
        engine: SparkConnection | None = SparkConnection.from_airflow(name, look_up(name))
    except BadConnection:  # a command works also where only Cassandra and the log are known
        engine = None
    if engine is None or not engine.is_connect:
        _prepare_local_spark(Path(job.__file__).with_name("log4j2.properties"))
        engine = None
    connections = opened.connections.model_copy(update={"spark": engine})
    call = job.Job(application, opened.pipeline, connections, None, argparse.Namespace())
    with job.spark_session(call) as spark:
        yield spark


def _prepare_local_spark(logging: Path) -> None:
    """Set the environment in which PySpark starts Spark in this process."""
    from tidemark.embedded.jars.class_archive import driver_java_options
    from tidemark.embedded.jars.ivy import pyspark_folder
    from tidemark.embedded.ports import LOOPBACK
    from tidemark.settings import Settings

    java = f"{driver_java_options(Settings.read())} -Dlog4j2.configurationFile=file:{logging}"
    shown = str(sys.stderr.isatty()).lower()
    arguments = ["--conf", f"spark.ui.showConsoleProgress={shown}", "--driver-java-options", java]
    wanted = {
        "SPARK_HOME": str(pyspark_folder()),
        "SPARK_LOCAL_IP": LOOPBACK,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": shlex.join(["--master", "local[*]", *arguments, "pyspark-shell"]),
    }
    # Variables that are set already take precedence.
    os.environ.update({name: value for name, value in wanted.items() if name not in os.environ})
