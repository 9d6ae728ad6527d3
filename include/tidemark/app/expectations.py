"""Loads the suite of expectations that audits a pipeline. Evaluates nothing."""

from tidemark.log.expectations import Suite, load_suite
from tidemark.pipeline.loader import expectations_folder, load_pipelines
from tidemark.pipeline.model import Pipeline
from tidemark.settings import Settings


def pipeline_suite(pipeline: Pipeline, settings: Settings | None = None) -> Suite:
    """The suite that the pipeline names, from the folder ``expectations`` beside that of its file."""
    loaded = load_pipelines(settings)
    (file,) = [
        file for file, one in zip(loaded.files, loaded.pipelines, strict=True) if one.name == pipeline.name
    ]
    return load_suite(expectations_folder(file), pipeline.expectations)
