"""A declared pipeline or its log, opened with the connections that the environment has for it.

A mistyped name creates nothing. Pipelines without a file: ``tidemark.cli.pipeline_state``.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.app.open_pipeline import OpenPipeline
    from tidemark.log.files.parquet import LogFolder
    from tidemark.log.state.control import LogControl
    from tidemark.pipeline.model import Pipeline


def open_pipeline(name: str) -> "OpenPipeline":
    """A pipeline with everything that commands ask of it. Raises ``UnknownPipeline``."""
    from tidemark.app.open_pipeline import OpenPipeline
    from tidemark.cli.connections import look_up
    from tidemark.pipeline.connections import collect_connections
    from tidemark.pipeline.loader import find_pipeline

    declared = find_pipeline(name)
    return OpenPipeline(declared, collect_connections(declared, look_up))


def open_log(name: str) -> "tuple[Pipeline, LogControl, LogFolder]":
    """A pipeline's declaration, its log in the control plane, and the folder with the log's files."""
    from tidemark.log.files.parquet import LogFolder
    from tidemark.log.state.control import LogControl

    opened = open_pipeline(name)
    return opened.pipeline, LogControl(opened.consensus, name), LogFolder(name, opened.pipeline.log.path)
