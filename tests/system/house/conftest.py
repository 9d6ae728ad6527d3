"""One DagBag for all house rules, read in an Airflow home of its own."""

import os
from typing import Any

import pytest

from tidemark.settings import ROOT


@pytest.fixture(scope="session")
def dag_bag(tmp_path_factory: pytest.TempPathFactory) -> Any:
    home = tmp_path_factory.mktemp("airflow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_HOME", str(home))
        patch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
        patch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(ROOT / "dags"))
        patch.setenv("AIRFLOW__CORE__PLUGINS_FOLDER", str(ROOT / "plugins"))
        patch.setenv("TIDEMARK_HOME", str(home / "tidemark"))
        patch.delenv("TIDEMARK_PIPELINES", raising=False)
        assert "airflow" not in os.sys.modules, "Airflow was imported before its home was set"
        from airflow.dag_processing.dagbag import DagBag

        return DagBag(str(ROOT / "dags"))
