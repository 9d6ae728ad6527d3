"""OpLog agents: one process for every pipeline file with a section ``agent``.

They need Kafka and Cassandra, so they are started after these, and stopped before them.
"""

import http.client
import os
import sys
from dataclasses import dataclass

from tidemark.embedded.ports import LOOPBACK
from tidemark.embedded.services.airflow_environment import airflow_environment
from tidemark.embedded.services.service import Program, Service
from tidemark.embedded.state import State
from tidemark.pipeline.agent import DEFAULT_PORT
from tidemark.pipeline.loader import load_pipelines
from tidemark.settings import Settings

NAME = "oplog"
NEEDS = frozenset({"kafka", "cassandra"})
"""The services that have to answer before an agent starts."""
PREFIX = f"{NAME}-"
"""The beginning of a program's name; the pipeline follows."""


@dataclass(frozen=True, slots=True)
class LocalAgent:
    """The agent of a pipeline on this machine."""

    pipeline: str
    port: int


def local_agents(settings: Settings) -> list[LocalAgent]:
    """The agents that the pipeline files of this installation declare.

    One that names no port of its own listens where ``TIDEMARK_OPLOG_PORT`` says.
    """
    found = []
    for pipeline in load_pipelines(settings).pipelines:
        if pipeline.agent is not None:
            _, port = pipeline.agent.address
            found.append(LocalAgent(pipeline.name, settings.oplog_port if port == DEFAULT_PORT else port))
    return found


def oplog_service(settings: Settings, state: State) -> Service:
    """The agents of this home, ready to be started."""
    agents = local_agents(settings)
    environ = {**os.environ, **airflow_environment(settings, state)}
    programs = tuple(
        Program(
            name=f"{PREFIX}{agent.pipeline}",
            title=f"The agent of {agent.pipeline}",
            command=(
                *(sys.executable, "-m", "tidemark.cli.main", "oplog", "serve", agent.pipeline),
                *("--listen", f"{LOOPBACK}:{agent.port}"),
            ),
            environ=environ,
            cwd=settings.root,
            port=agent.port,
            variable="TIDEMARK_OPLOG_PORT",
        )
        for agent in agents
    )

    def question(since: float) -> str | None:
        return next((problem for agent in agents if (problem := ask_agent(agent.port))), None)

    return Service(
        name=NAME,
        title="OpLog",
        programs=programs,
        prepare=lambda: None,
        question=question,
        deadline=90.0,
        address=", ".join(f"http://{LOOPBACK}:{agent.port}" for agent in agents),
    )


def ask_agent(port: int) -> str | None:
    """Ask an agent for its health; None when it is well, else what came instead."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
    try:
        connection.request("GET", "/health")
        answer = connection.getresponse()
        said = answer.read(10_000).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        connection.close()
    return None if answer.status == 200 else f"{answer.status}: {said}"
