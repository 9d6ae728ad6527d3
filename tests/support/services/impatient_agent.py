"""The command ``tidemark`` with an agent whose patience with its clients is short, for tests that exhaust it.

Only lengths of time are changed. Each is a constant of the agent, because no operator has to set it.
"""

from functools import partial

from tidemark.app import oplog_agent
from tidemark.cli.main import main as tidemark
from tidemark.oplog.agent.server import connections
from tidemark.oplog.agent.streams.settings import StreamSettings

STALL = 3.0
"""Seconds; a reader of 10,000 bytes a minute may not keep an agent longer."""


def main() -> None:
    """``tidemark``, with the arguments of the process."""
    oplog_agent.StreamSettings = partial(StreamSettings, stall=STALL, retry=100)  # type: ignore[misc,assignment]
    connections.HEAD_WITHIN = connections.FLUSHED_WITHIN = 2.0
    connections.WRITTEN_WITHIN = 2 * STALL
    tidemark()
