import os

import pytest
from tests.system.conftest import Services

from tidemark.embedded.lifecycle import up
from tidemark.settings import Settings


@pytest.fixture(scope="session")
def services():
    s = Settings.read(
        {
            **os.environ,
            "TIDEMARK_CACHE": "/tmp/emb/cache",
            "TIDEMARK_HOME": "/tmp/emb/home",
            "TIDEMARK_KAFKA_PORT": "19092",
            "TIDEMARK_CASSANDRA_PORT": "19042",
            "TIDEMARK_AIRFLOW_PORT": "18080",
        }
    )
    up(s, ("kafka", "cassandra", "spark"))
    return Services(s, up(s, ("airflow",), "local").state)
