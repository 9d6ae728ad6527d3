"""Which suite of expectations audits a pipeline. Reads the suite's file; judges nothing."""

from tidemark.delivery.pipeline import Pipeline
from tidemark.delivery.pipeline_file import expectations_folder, load_pipelines
from tidemark.log.suite import Suite, load_suite
from tidemark.settings import Settings


def pipeline_suite(pipeline: Pipeline, settings: Settings | None = None) -> Suite:
    """The suite that the pipeline names, from the folder beside the one its own file lies in."""
    loaded = load_pipelines(settings)
    (file,) = [
        file for file, one in zip(loaded.files, loaded.pipelines, strict=True) if one.name == pipeline.name
    ]
    return load_suite(expectations_folder(file), pipeline.expectations)
