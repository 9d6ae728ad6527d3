"""The Connect server's files, command and environment: a token of its own, and nowhere to be seen."""

from pathlib import Path

import pytest

from tidemark.embedded.jars.fetch import Jars
from tidemark.embedded.java import Java
from tidemark.embedded.services.spark_connect import (
    ensure_token,
    server_environment,
    server_options,
    spark_connect_service,
    token_file,
)

pytestmark = pytest.mark.unit

JAVA = Java(Path("/jvm/bin/java"), 17, "17.0.1")


@pytest.fixture
def service(settings):
    service = spark_connect_service(settings, JAVA, Jars(Path("/jars")), heap="3g")
    service.prepare()
    return service


def test_the_token_is_made_once_for_its_owner_only(settings):
    token = ensure_token(settings)
    assert len(token) > 30
    assert ensure_token(settings) == token
    assert token_file(settings).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_text("")])
def test_a_lost_token_is_made_anew(settings, damage):
    token = ensure_token(settings)
    damage(token_file(settings))
    assert ensure_token(settings) not in ("", token)


def test_a_token_that_others_could_read_is_closed_to_them_again(settings):
    ensure_token(settings)
    token_file(settings).chmod(0o644)
    ensure_token(settings)
    assert token_file(settings).stat().st_mode & 0o777 == 0o600


def test_neither_the_command_nor_the_environment_has_the_token(settings, service):
    (program,) = service.programs
    token = ensure_token(settings)
    assert token not in " ".join(program.command)
    assert token not in " ".join(program.environ.values())


def test_the_options_are_in_a_file_for_its_owner_only(settings, service):
    path = settings.home / "spark" / "connect.conf"
    assert f"spark.connect.authenticate.token {ensure_token(settings)}\n" in path.read_text()
    assert "spark.driver.memory 3g\n" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_it_listens_on_this_machine_only(settings):
    options = server_options(settings, JAVA, Jars(Path("/jars")), "1g", "t")
    assert options["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert options["spark.connect.grpc.binding.port"] == str(settings.spark_port)
    assert options["spark.ui.enabled"] == "false"


def test_what_a_killed_server_left_is_removed(settings, service):
    left = settings.home / "spark" / "tmp" / "spark-7f3a" / "block"
    left.parent.mkdir()
    left.touch()
    service.prepare()
    assert not left.exists()


def test_secrets_and_sparks_settings_of_the_callers_shell_are_not_inherited(settings):
    given = {
        "PATH": "/bin",
        "AIRFLOW_CONN_KAFKA_DEFAULT": "hunter2",
        "SPARK_REMOTE": "sc://elsewhere",
        "PYSPARK_SUBMIT_ARGS": "--master yarn",
        "PYTHONPATH": "/mine",
    }
    environ = server_environment(settings, JAVA, given)
    assert environ["PATH"] == "/bin"
    assert environ["PYTHONPATH"] == f"{settings.root}:/mine"
    assert not {"AIRFLOW_CONN_KAFKA_DEFAULT", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS"} & environ.keys()
