"""An Airflow for the plugin's unit tests: a home of its own, no database, imported once a process."""

import warnings
from collections.abc import Iterator

import pytest


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
