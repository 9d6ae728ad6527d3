"""Connections from Airflow, where the secrets are; Airflow masks what it hands out in every task log."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from tidemark.connections import connection_fields

if TYPE_CHECKING:
    from tidemark.connections import Connections
    from tidemark.pipeline.model import Pipeline


def look_up(name: str) -> dict[str, Any]:
    """One connection in the form ``tidemark.connections`` reads."""
    return connection_fields(BaseHook.get_connection(name))


def pipeline_connections(pipeline: "Pipeline") -> "Connections":
    """Everything the pipeline's applications need to reach their services."""
    from tidemark.pipeline.connections import collect_connections

    return collect_connections(pipeline, look_up)
