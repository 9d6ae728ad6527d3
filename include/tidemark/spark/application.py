"""What every Spark application shares: its arguments, its session and its summary.

The summary is a JSON file with the result for the process that submitted the application. It is written on
failure too. Connections come from a file that an argument names: no secret is on the command line.
"""

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from tidemark.connections import Connections, SparkConnection
from tidemark.delivery.transforms.function import modules_called
from tidemark.errors import TidemarkError
from tidemark.log.audit import prepare_audit
from tidemark.pipeline.loader import find_pipeline
from tidemark.pipeline.model import Pipeline
from tidemark.spark.code_digests import CodeDigests
from tidemark.spark.engine import OpenEngine, open_session
from tidemark.spark.library_archive import library_digest
from tidemark.spark.shared_path import check_shared_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = structlog.get_logger()

_engine: ContextVar[dict[str, Any] | None] = ContextVar("engine", default=None)
"""The part of the running application's summary that says which engine it used, if it opened a session."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run of an application for a pipeline."""

    application: str
    pipeline: Pipeline
    connections: Connections
    summary: Path | None
    arguments: argparse.Namespace


def read_job(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> Job:
    """Parse the arguments: the application's own, which ``parser`` declares, and those that all share."""
    parser.add_argument("--pipeline", required=True, help="name of the pipeline")
    parser.add_argument("--connections", required=True, type=Path, help="file with the connections to use")
    parser.add_argument("--summary", type=Path, help="where to write the JSON summary")
    arguments = parser.parse_args(argv)
    pipeline = find_pipeline(arguments.pipeline)
    for declared in pipeline.writers:  # reading the pipeline has loaded them; later, files may be others
        CodeDigests.loaded(modules_called(getattr(declared, "transforms", ())))
    return Job(
        application=parser.prog,
        pipeline=pipeline,
        connections=Connections.load(arguments.connections),
        summary=arguments.summary,
        arguments=arguments,
    )


def run_job(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None, work: Callable[[Job], dict[str, Any]]
) -> int:
    """Run a pipeline's application and write its summary, also on failure. Returns the exit code."""
    return summarise(argv, lambda: work(read_job(parser, argv)))


def summarise(argv: Sequence[str] | None, work: Callable[[], dict[str, Any]]) -> int:
    """Run an application and write its summary, also on failure.

    Returns the exit code: 0, 1 where ``work`` failed, 2 for bad arguments.
    """
    library_digest()  # now, while the files are those that this process has loaded
    summary = _summary_path(argv)
    started = time.monotonic()
    engine: dict[str, Any] = {}
    reporting = _engine.set(engine)
    try:
        result = work()
        code, outcome = 0, {"ok": True, **result}
    except TidemarkError as error:
        code, outcome = 1, {"ok": False, "error": str(error), "kind": type(error).__name__}
        outcome["needs_person"] = error.needs_person
        log.error(str(error))
    except SystemExit as leaving:  # argparse has printed the reason
        if not leaving.code:
            raise
        problem = f"bad arguments: {list(argv or sys.argv[1:])}"
        code, outcome = 2, {"ok": False, "error": problem, "kind": "BadArguments"}
    except Exception as error:
        code, outcome = 1, {"ok": False, "error": cause_of(error), "kind": type(error).__name__}
        traceback.print_exc()
    finally:
        _engine.reset(reporting)
    outcome |= engine
    outcome["seconds"] = round(time.monotonic() - started, 3)
    if summary:
        summary.write_text(json.dumps(outcome))
    print(json.dumps(outcome), file=sys.stderr)
    return code


def cause_of(error: Exception) -> str:
    """An error as one line: the message of the executor, without the stack traces that Spark adds."""
    if isinstance(error, TidemarkError):
        return str(error)
    lines = [line for line in str(error).splitlines() if line.strip()]
    marks = [i for i, line in enumerate(lines) if line.strip().endswith("Traceback (most recent call last):")]
    if not marks:
        return f"{type(error).__name__}: {error}"
    raised = [line for line in lines[marks[-1] + 1 :] if not line[0].isspace()]
    return (raised or [type(error).__name__])[0].strip()


@contextmanager
def spark_session(job: Job) -> "Iterator[SparkSession]":
    """The session of a pipeline's application, whose engine sees the same log."""
    with _reported(f"{job.pipeline.name}.{job.application}", job.connections.spark) as engine:
        check_shared_path(engine, job.pipeline.name, job.pipeline.log.path)
        yield engine.spark


@contextmanager
def named_session(name: str, connection: SparkConnection | None) -> "Iterator[SparkSession]":
    """The session of an application that is of no pipeline."""
    with _reported(name, connection) as engine:
        yield engine.spark


@contextmanager
def _reported(name: str, connection: SparkConnection | None) -> Iterator[OpenEngine]:
    """A session on the connection's engine, which the application's summary will name."""
    with open_session(name, connection) as engine:
        if (report := _engine.get()) is not None:
            report["engine"] = engine.to_dict()
        yield engine


def load_audit_beside(threads: Executor) -> None:
    """Load Great Expectations in another thread, which takes seconds, while Spark starts in this one.

    PySpark is imported first: Great Expectations imports it too, and two threads that import the same package
    at once may each find it half initialised.
    """
    import pyspark.sql.functions  # noqa: F401  # the import is the point

    threads.submit(prepare_audit)


def _summary_path(argv: Sequence[str] | None) -> Path | None:
    """The path of the summary, parsed alone: it is needed also when the other arguments are wrong."""
    finder = argparse.ArgumentParser(add_help=False)
    finder.add_argument("--summary", type=Path)
    summary: Path | None = finder.parse_known_args(argv)[0].summary
    return summary
