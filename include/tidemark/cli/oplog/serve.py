"""``tidemark oplog serve``, also installed as ``oplogd``: the agent of a pipeline, in the foreground.

One line is printed when it answers requests; what happens later is logged, one JSON object a line, to stderr.
Exit code 0 after a stop by SIGTERM or SIGINT, 1 where it could not start, or where operations were given up.
"""

import os
import sys
from typing import Annotated

import typer

from tidemark.errors import TidemarkError


def serve(
    pipeline: Annotated[
        str | None, typer.Argument(metavar="PIPELINE", help="Name of the pipeline; or OPLOGD_PIPELINE.")
    ] = None,
    listen: Annotated[str | None, typer.Option(help="Instead of the file's, such as 127.0.0.1:8042.")] = None,
    tokens: Annotated[
        str | None, typer.Option(metavar="CONNECTION", help="The connection with the tokens.")
    ] = None,
    udp: Annotated[str | None, typer.Option(help="loopback, open or closed.")] = None,
    ingest_only: Annotated[
        bool, typer.Option("--ingest-only", help="Take operations in, without streams: needs Kafka only.")
    ] = False,
) -> None:
    """Take operations in by UDP and HTTP, and stream them to consumers, until SIGTERM."""
    from tidemark.app.open_pipeline import OpenPipeline
    from tidemark.app.oplog_agent import agent_settings, agent_streams, agent_topic, register_collections
    from tidemark.cli.connections import look_up
    from tidemark.cli.oplog.logging import log_as_json
    from tidemark.oplog.agent.process import AgentProcess, run_agent
    from tidemark.oplog.agent.settings import PIPELINE
    from tidemark.pipeline.connections import collect_connections
    from tidemark.pipeline.loader import find_pipeline

    name = pipeline or os.environ.get(PIPELINE)
    if not name:
        raise typer.BadParameter(f"name a pipeline, or set {PIPELINE}.", param_hint="PIPELINE")
    declared = find_pipeline(name)
    options = {"listen": listen, "tokens": tokens, "udp": udp}
    settings = agent_settings(declared, look_up, os.environ, is_ingest_only=ingest_only, **options)
    opened = OpenPipeline(declared, collect_connections(declared, look_up))
    log_as_json()
    topic = agent_topic(opened, settings)
    if not ingest_only:
        register_collections(opened)
    streams = None if ingest_only else agent_streams(opened, settings, topic)

    def ready(address: str) -> None:
        what = "takes operations" if ingest_only else "takes and streams operations"
        print(f"{name}: the agent {what} at http://{address} (topic {settings.topic})", flush=True)

    run_agent(lambda: AgentProcess(settings, topic, streams), ready)


def main() -> None:
    """The program ``oplogd``."""
    try:
        typer.run(serve)
    except TidemarkError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
