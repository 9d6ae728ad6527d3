"""One Spark session an engine for the whole ring: of an application in this process, and of a Connect server.

Every test that has the fixture ``spark`` runs on both. One that can only be about one of them says so:
``@pytest.mark.parametrize("spark", ["application"], indirect=True)``.
"""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.support.connect_server import running_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session", params=["application", "connect"])
def spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[SparkSession]":
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        if request.param == "application":
            yield from application_session()
        else:
            from tidemark.spark.engine import open_session

            home = tmp_path_factory.mktemp("engine")
            patch.setenv("TIDEMARK_HOME", str(home))
            with running_server(home) as server, open_session("tests", server.connection) as engine:
                engine.spark.conf.set("spark.sql.shuffle.partitions", "2")
                yield engine.spark


def application_session() -> "Iterator[SparkSession]":
    from pyspark.sql import SparkSession

    from tidemark.embedded.jars.class_archive import driver_java_options
    from tidemark.settings import Settings

    session = (
        SparkSession.builder.master("local[2]")
        .appName("tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", driver_java_options(Settings.read()))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "OFF")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()
