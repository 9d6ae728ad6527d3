"""Logs of the agent: one JSON object a line on stderr, for collectors and people alike."""

import sys

import structlog


def log_as_json() -> None:
    """From now on, events of this process are such lines."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(default=str),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
