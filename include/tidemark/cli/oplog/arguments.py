"""Arguments that the commands of ``tidemark oplog`` share: which agent, and with which token."""

import os
from pathlib import Path
from typing import Annotated

import typer

TOKEN = "TIDEMARK_OPLOG_TOKEN"
"""The environment variable with the token. There is no option for it: a command line is visible to others."""

Target = Annotated[
    str, typer.Argument(metavar="AGENT", help="The agent: its address, or the name of its pipeline.")
]
TokenFile = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help=f"A file with the token; by default ${TOKEN}."),
]


def agent_url(target: str) -> str:
    """The address of an agent. Raises ``UnknownPipeline``, and ``BadParameter`` for one without an agent."""
    if "://" in target:
        return target
    from tidemark.pipeline.agent import DEFAULT_PORT
    from tidemark.pipeline.loader import find_pipeline
    from tidemark.settings import Settings

    declared = find_pipeline(target)
    if declared.agent is None:
        raise typer.BadParameter(f"pipeline {target} declares no agent. Add a section `agent` to its file.")
    host, port = declared.agent.address
    if port == DEFAULT_PORT:
        port = Settings.read().oplog_port
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


def read_token(file: Path | None) -> str | None:
    """The token of the file or of the environment; None where there is none."""
    if file is not None:
        return file.read_text(encoding="utf-8").strip()
    return os.environ.get(TOKEN) or None
