"""Shows refused pipeline files as one import error of Airflow, so that they hide no other pipeline's DAGs."""

from tidemark.pipeline.loader import load_pipelines

if refused := load_pipelines().refused:
    raise ImportError("\n".join(str(refusal) for refusal in refused))
