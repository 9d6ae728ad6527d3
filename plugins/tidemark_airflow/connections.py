"""Pipelines and work journals opened with Airflow's connections.

The secrets stay in Airflow, which masks them in every task log. Nothing here stores one.
"""

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from tidemark.connections import connection_fields

if TYPE_CHECKING:
    from tidemark.app.open_pipeline import OpenPipeline
    from tidemark.connections import Connections
    from tidemark.pipeline.model import Pipeline
    from tidemark.work.client import Work


def look_up(name: str) -> dict[str, Any]:
    """One connection, in the form that ``tidemark.connections`` reads."""
    return connection_fields(BaseHook.get_connection(name))


def pipeline_connections(pipeline: "Pipeline") -> "Connections":
    """All connections that a pipeline needs, except to Spark."""
    from tidemark.pipeline.connections import collect_connections

    return collect_connections(pipeline, look_up)


def engine_connections(pipeline: "Pipeline") -> "Connections":
    """All connections that a pipeline's Spark applications need, with their engine's."""
    from tidemark.pipeline.connections import collect_engine_connections

    return collect_engine_connections(pipeline, look_up)


def open_pipeline(name: str, *, with_engine: bool = False) -> "OpenPipeline":
    """A declared pipeline with its connections; that of its Spark engine where it is asked for."""
    from tidemark.app.open_pipeline import OpenPipeline
    from tidemark.pipeline.loader import find_pipeline

    declared = find_pipeline(name)
    connections = engine_connections(declared) if with_engine else pipeline_connections(declared)
    return OpenPipeline(declared, connections)


def open_work(journal: str, owner: str | None = None) -> "Work":
    """A declared work journal with its connection; ``owner`` is the name that its claims carry."""
    from tidemark.work.client import Work

    return Work.of_file(journal, look_up=look_up, owner=owner)
