"""Builds the writers of a pipeline. Knows no kind of writer: each kind declares how it is built."""

from typing import cast

from tidemark.connections import Connections
from tidemark.delivery.writer import Writer
from tidemark.pipeline.model import Pipeline
from tidemark.pipeline.writers import WRITERS


def build_writers(pipeline: Pipeline, connections: Connections) -> list[Writer]:
    """The pipeline's writers, in the order of the file."""
    kinds = [WRITERS.find(declared.kind) for declared in pipeline.writers]
    return [
        cast("Writer", kind.build(pipeline, declared, connections))
        for kind, declared in zip(kinds, pipeline.writers, strict=True)
    ]
