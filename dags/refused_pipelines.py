"""Reports refused pipeline files as one import error of Airflow. The DAGs of others are not affected."""

from tidemark.pipeline.loader import load_pipelines

if refused := load_pipelines().refused:
    raise ImportError("\n".join(str(refusal) for refusal in refused))
