"""The environment of Airflow: complete, computed, and without secrets."""

import json
import os
import sys
from pathlib import Path

import pytest

from tidemark.embedded.services.airflow import passwords_file, write_secrets
from tidemark.embedded.services.airflow_environment import airflow_environment, embedded_connections
from tidemark.embedded.state import SparkMode, State
from tidemark.settings import ROOT, Settings

pytestmark = pytest.mark.unit

STATE = State({"airflow.worker_log": 18793, "airflow.trigger_log": 18794, "spark.master": 17077})


@pytest.fixture
def settings(tmp_path) -> Settings:
    ports = {
        "TIDEMARK_KAFKA_PORT": "19092",
        "TIDEMARK_CASSANDRA_PORT": "19042",
        "TIDEMARK_AIRFLOW_PORT": "18080",
        "TIDEMARK_SPARK_PORT": "18502",
    }
    return Settings.read({**ports, "TIDEMARK_HOME": str(tmp_path), "TIDEMARK_PIPELINES": "/a:/b"})


def test_another_port_is_set_in_every_place_that_needs_it(settings):
    environ = airflow_environment(settings, STATE, {})
    assert environ["AIRFLOW__API__PORT"] == "18080"
    assert environ["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:18080/execution/"
    assert environ["AIRFLOW__API__BASE_URL"] == "http://127.0.0.1:18080"
    assert environ["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert environ["AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT"] == "18793"
    assert environ["AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT"] == "18794"


def test_it_can_be_computed_for_a_home_in_which_nothing_was_started(settings):
    environ = airflow_environment(settings, State(), {})
    assert environ["AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT"] == "8793"
    assert "JAVA_HOME" not in environ


def test_folders_are_those_of_the_checkout_and_the_home(settings, tmp_path):
    environ = airflow_environment(settings, STATE, {})
    assert environ["AIRFLOW__CORE__DAGS_FOLDER"] == str(ROOT / "dags")
    assert environ["AIRFLOW__CORE__PLUGINS_FOLDER"] == str(ROOT / "plugins")
    assert environ["AIRFLOW_HOME"] == str(tmp_path / "airflow")
    assert (
        environ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
        == f"sqlite:///{tmp_path}/airflow/airflow.db?timeout=60"
    )


def test_settings_read_in_it_are_the_same_settings(settings):
    assert Settings.read(airflow_environment(settings, STATE, {})) == settings


def test_spark_submit_and_its_python_are_found(settings):
    environ = airflow_environment(settings, STATE, {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/mine"})
    assert environ["PATH"] == f"{Path(sys.executable).parent}:/usr/bin:/bin"
    assert environ["PYTHONPATH"] == f"{ROOT}:/mine"
    assert environ["PYSPARK_PYTHON"] == sys.executable
    assert Path(environ["SPARK_HOME"], "bin", "spark-submit").is_file()
    assert environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert environ["GX_ANALYTICS_ENABLED"] == "False"


def test_the_java_that_up_found_is_handed_on(settings):
    assert airflow_environment(settings, State(java_home="/jvm/17"), {})["JAVA_HOME"] == "/jvm/17"


def test_added_to_its_own_result_it_does_not_grow(settings):
    once = airflow_environment(settings, STATE, {"PATH": "/bin"})
    assert airflow_environment(settings, STATE, once)["PATH"] == once["PATH"]
    assert airflow_environment(settings, STATE, once)["PYTHONPATH"] == once["PYTHONPATH"]


def test_connections_lead_to_the_services_of_this_home(settings):
    kafka, cassandra, spark = map(json.loads, embedded_connections(settings, STATE).values())
    assert kafka == {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:19092"}}
    assert cassandra == {"conn_type": "cassandra", "host": "127.0.0.1", "port": 19042}
    token = {"token_file": str(settings.home / "spark" / "token")}
    assert spark == {"conn_type": "spark", "host": "sc://localhost", "port": 18502, "extra": token}


def test_in_local_mode_spark_is_started_by_each_application(settings):
    local = State(STATE.ports, SparkMode.LOCAL)
    spark = json.loads(embedded_connections(settings, local)["AIRFLOW_CONN_SPARK_DEFAULT"])
    assert spark == {"conn_type": "spark", "host": "local[2]"}


def test_in_cluster_mode_spark_is_the_cluster(settings):
    cluster = State(STATE.ports, SparkMode.CLUSTER)
    spark = json.loads(embedded_connections(settings, cluster)["AIRFLOW_CONN_SPARK_DEFAULT"])
    assert spark == {"conn_type": "spark", "host": "spark://127.0.0.1", "port": 17077}


def test_connections_and_tuning_of_the_caller_win(settings):
    given = {"AIRFLOW_CONN_KAFKA_DEFAULT": "mine", "AIRFLOW__CORE__PARALLELISM": "16"}
    environ = airflow_environment(settings, STATE, given)
    assert "AIRFLOW_CONN_KAFKA_DEFAULT" not in environ
    assert "AIRFLOW__CORE__PARALLELISM" not in environ
    assert "AIRFLOW_CONN_CASSANDRA_DEFAULT" in environ
    assert airflow_environment(settings, STATE, {})["AIRFLOW__CORE__PARALLELISM"] == "4"


def test_ports_of_the_callers_shell_do_not_win(settings):
    environ = airflow_environment(
        settings, STATE, {"AIRFLOW__API__PORT": "8080", "AIRFLOW_HOME": "/elsewhere"}
    )
    assert environ["AIRFLOW__API__PORT"] == "18080"
    assert environ["AIRFLOW_HOME"] != "/elsewhere"


def test_nothing_is_done_to_the_environment_of_this_process(settings):
    before = dict(os.environ)
    airflow_environment(settings, STATE)
    assert dict(os.environ) == before


def test_secrets_are_made_once_for_the_owner_only_and_are_not_in_the_environment(settings, tmp_path):
    write_secrets(settings)
    config = (tmp_path / "airflow" / "airflow.cfg").read_text()
    password = json.loads(passwords_file(settings).read_text())["admin"]
    write_secrets(settings)
    assert (tmp_path / "airflow" / "airflow.cfg").read_text() == config
    assert json.loads(passwords_file(settings).read_text()) == {"admin": password}
    for path in (tmp_path / "airflow" / "airflow.cfg", passwords_file(settings)):
        assert path.stat().st_mode & 0o777 == 0o600
    values = [line.split(" = ")[1] for line in config.splitlines() if " = " in line]
    assert len({*values, password}) == 4
    assert not {*values, password} & set(airflow_environment(settings, STATE, {}).values())


def test_i26_the_database_keys_and_passwords_are_for_their_owner_only_also_those_that_were_not(settings):
    home = settings.home / "airflow"
    home.mkdir(parents=True, mode=0o755)
    for name in ("airflow.db", "airflow.db-wal", "airflow.cfg"):
        (home / name).touch(mode=0o644)

    write_secrets(settings)

    assert home.stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o777 for path in home.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    assert {"airflow.db", "airflow.db-wal", "airflow.cfg", passwords_file(settings).name} == set(modes)
