import os, pytest
from types import SimpleNamespace
from tidemark.settings import Settings
from tidemark.embedded.lifecycle import up
from tests.system.conftest import Services


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
