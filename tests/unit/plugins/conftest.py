"""An Airflow for the plugin's unit tests: a home of its own, no database, imported once a process."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.memory_writers import Stream
from tests.support.opened_pipeline import given_opened
from tests.support.pipeline_world import PipelineWorld

from tidemark.app.open_pipeline import OpenPipeline


@pytest.fixture(scope="session", autouse=True)
def airflow_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Import Airflow with a home of its own; its import alone emits deprecation warnings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_HOME", str(tmp_path_factory.mktemp("airflow")))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import airflow.providers.apache.spark.operators.spark_submit
            import airflow.providers.standard.operators.hitl
            import airflow.sdk
            import airflow.triggers.base  # noqa: F401
        yield


@pytest.fixture
def house(tmp_path: Path) -> PipelineWorld:
    """A pipeline ``orders`` in memory."""
    return PipelineWorld(tmp_path)


@pytest.fixture
def stream() -> Stream:
    """Its writer, which the test may let fail."""
    return Stream()


@pytest.fixture
def opened(house: PipelineWorld, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> OpenPipeline:
    """The pipeline as the plugin opens it."""
    return given_opened(house, monkeypatch, stream)
