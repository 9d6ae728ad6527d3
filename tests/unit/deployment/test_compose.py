"""docker-compose.yaml and what belongs to it, as far as it can be known without a Docker engine.

Every check is a function that names what is wrong. The first tests ask it about our files, the later ones
about a copy with one fault, so that none of them can pass by looking at nothing.
"""

import json
import re
from functools import cache
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from deploy import admin_password, cassandra_role
from ruamel.yaml import YAML

from tidemark.embedded.jars.fetch import Jars
from tidemark.embedded.java import Java
from tidemark.embedded.services.spark_connect import server_options
from tidemark.oplog.agent.settings import PASSWORDS, PIPELINE, VARIABLES
from tidemark.settings import Settings

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
OVERLAYS = ["deploy/own-kafka.yaml", "deploy/own-cassandra.yaml"]
ONE_SHOT = {"airflow-init", "cassandra-init"}
AIRFLOW = {
    "airflow-init",
    "airflow-api-server",
    "airflow-scheduler",
    "airflow-dag-processor",
    "airflow-triggerer",
}
SECRET = re.compile("PASSWORD|SECRET|KEY|TOKEN")
FROM_ENV = re.compile(r"\$\{[A-Z_]+:\?[^}]+\}")
VARIABLE = re.compile(r"\$\{([A-Z_]+)(?::([-?])([^}]*))?\}")

Document = dict[str, Any]


def read(path: str) -> str:
    return (ROOT / path).read_text()


@cache
def resolved(path: str) -> str:
    return json.dumps(YAML(typ="safe").load(read(path)))


def load(path: str) -> Document:
    """A Compose file with its anchors resolved and no part shared, so that a test can change one service."""
    return json.loads(resolved(path))


@pytest.fixture
def compose() -> Document:
    return load("docker-compose.yaml")


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings.read({"TIDEMARK_HOME": str(tmp_path), "TIDEMARK_CACHE": str(tmp_path)})


# What is asked


def properties(path: str) -> dict[str, str]:
    """The settings of a file for Spark."""
    lines = (line.split(maxsplit=1) for line in read(path).splitlines() if line.strip()[:1] not in ("", "#"))
    return dict(lines)


@cache
def schema() -> jsonschema.protocols.Validator:
    """The Compose specification's own schema, as check-jsonschema ships it."""
    vendored = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    text = json.loads(vendored.read_text())
    return jsonschema.validators.validator_for(text)(text)


def schema_errors(document: Document) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in schema().iter_errors(document)]


def without_healthcheck(document: Document) -> set[str]:
    return {
        name for name, service in document["services"].items() if not service.get("healthcheck")
    } - ONE_SHOT


def without_restart(document: Document) -> set[str]:
    services = document["services"]
    return {name for name in services.keys() - ONE_SHOT if services[name].get("restart") != "unless-stopped"}


def literal_secrets(document: Document) -> list[str]:
    """Settings that hold a secret themselves: by their name, inside a URL or inside a connection's JSON."""
    found = []
    for name, service in document["services"].items():
        for key, given in service.get("environment", {}).items():
            value = str(given)
            secrets = re.findall(r"://[^/@]*?:((?:\$\{[^}]*\}|[^@/$])*)@", value)
            secrets += re.findall(r'"[^"]*(?:password|secret|token)[^"]*": *"([^"]*)"', value)
            if SECRET.search(key) and not key.endswith("_FILE"):
                secrets.append(value)
            found += [f"{name}: {key}" for secret in secrets if not FROM_ENV.fullmatch(secret)]
    return found


def secrets_in_commands(document: Document) -> set[str]:
    """Services with a variable in a command line, where every user of the machine could read it."""
    return {
        name
        for name, service in document["services"].items()
        if "${" in str([service.get("command"), service.get("entrypoint"), service.get("healthcheck")])
    }


def variables(text: str) -> dict[str, str | None]:
    """The variables a Compose file asks for, with their default; None if there is no default."""
    return {
        name: default if how == "-" else None
        for name, how, default in VARIABLE.findall(text.replace("$$", ""))
    }


def example(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """What .env.example asks to be filled in, and what it only mentions."""
    lines = re.findall(r"^(#?)([A-Z_]+)=(.*)$", text, re.MULTILINE)
    return (
        {name: value for hash_, name, value in lines if not hash_},
        {name: value for hash_, name, value in lines if hash_},
    )


def bad_dependencies(document: Document) -> list[str]:
    """Waiting for a service that does not exist, or for something it never becomes."""
    found = []
    for name, service in document["services"].items():
        for other, how in service.get("depends_on", {}).items():
            becomes = "service_completed_successfully" if other in ONE_SHOT else "service_healthy"
            if other not in document["services"] or how["condition"] != becomes:
                found.append(f"{name} → {other}")
    return found


def left_waiting(document: Document, overlay: Document) -> list[str]:
    """Services that still insist on one that the overlay switches off."""
    off = {name for name, service in overlay["services"].items() if service.get("profiles")}
    return [
        f"{name} → {other}"
        for name, service in document["services"].items()
        if name not in off
        for other, how in service.get("depends_on", {}).items()
        if other in off and how.get("required", True)
    ]


def mounts(document: Document) -> dict[str, set[str]]:
    return {
        name: {
            re.sub(r"\$\{[A-Z_]+:-([^}]*)\}", r"\1", volume).split(":")[0] for volume in service["volumes"]
        }
        for name, service in document["services"].items()
        if "volumes" in service
    }


def undeclared_volumes(document: Document) -> set[str]:
    named = {mount for used in mounts(document).values() for mount in used if not mount.startswith(".")}
    return named ^ set(document["volumes"])


def open_ports(document: Document) -> list[str]:
    return [
        f"{name}: {port}"
        for name, service in document["services"].items()
        for port in service.get("ports", [])
        if not str(port).startswith("127.0.0.1:")
    ]


def unequal_settings(document: Document, names: set[str]) -> set[str]:
    """Settings that one of these services lacks or has another value for, apart from airflow-init's own."""
    kept = [document["services"][name]["environment"] for name in sorted(names)]
    keys = set.union(*map(set, kept)) - {"AIRFLOW_ADMIN_PASSWORD", "TIDEMARK_SPARK_SLOTS"}
    return {key for key in keys if len({environment.get(key) for environment in kept}) > 1}


def images(document: Document) -> dict[str, str]:
    return {name: service["image"] for name, service in document["services"].items()}


def registry_hosts(document: Document) -> set[str]:
    """Images that name the machine they come from: that is for the operator of Docker to decide."""
    return {image for image in images(document).values() if re.match(r"[^/]*[.:][^/]*/", image)}


def embedded_versions(ivy: str) -> dict[str, str]:
    """Module → version of what the embedded services run."""
    return {
        f"{dependency.get('org')}:{dependency.get('name')}": dependency.get("rev", "")
        for dependency in ElementTree.fromstring(ivy).iter("dependency")
    }


def requirements() -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", read("requirements.txt"), re.MULTILINE))


def unequal_versions(document: Document, ivy: dict[str, str], python: dict[str, str]) -> set[str]:
    """Services whose version here is not the one the embedded services, and with them the tests, run."""
    pairs = {
        "kafka": (images(document)["kafka"], f"apache/kafka:{ivy['org.apache.kafka:kafka_2.13']}"),
        "cassandra": (
            images(document)["cassandra"],
            f"cassandra:{ivy['org.apache.cassandra:cassandra-all']}",
        ),
        "spark": (python["pyspark"], ivy["org.apache.spark:spark-sql-kafka-0-10_2.13"]),
        "spark-client": (python["pyspark-client"], python["pyspark"]),
    }
    return {name for name, (here, there) in pairs.items() if here != there}


# Our files


@pytest.mark.parametrize("path", ["docker-compose.yaml", *OVERLAYS])
def test_it_is_a_valid_compose_file(path):
    assert schema_errors(load(path)) == []


def test_every_service_is_there(compose):
    others = {"postgres", "kafka", "cassandra", "cassandra-init", "task-network"}
    others |= {"spark-master", "spark-worker", "spark-connect", "oplog"}
    assert compose["services"].keys() == AIRFLOW | others


def test_every_service_that_stays_up_is_checked_and_restarted(compose):
    assert without_healthcheck(compose) == set()
    assert without_restart(compose) == set()
    assert {compose["services"][name]["restart"] for name in ONE_SHOT} == {"no"}


def test_dependencies_wait_for_something_that_happens(compose):
    assert bad_dependencies(compose) == []


@pytest.mark.parametrize("path", ["docker-compose.yaml", *OVERLAYS])
def test_no_file_holds_a_secret(path):
    assert literal_secrets(load(path)) == []
    assert secrets_in_commands(load(path)) == set()


def test_what_must_be_set_is_what_env_example_asks_for():
    wanted = {name for name, default in variables(read("docker-compose.yaml")).items() if default is None}
    to_fill_in, _ = example(read(".env.example"))
    assert to_fill_in.keys() == wanted


def test_env_example_knows_every_variable_and_its_default():
    used: dict[str, str | None] = {}
    for path in [*OVERLAYS, "docker-compose.yaml"]:
        used |= variables(read(path))
    to_fill_in, mentioned = example(read(".env.example"))
    assert to_fill_in.keys() | mentioned.keys() == used.keys() | {"COMPOSE_FILE"}
    assert {name: default or "" for name, default in used.items()} == {
        name: value for name, value in (to_fill_in | mentioned).items() if name != "COMPOSE_FILE"
    }


def test_env_example_holds_no_secret_and_says_how_to_make_each():
    text = read(".env.example")
    to_fill_in, mentioned = example(text)
    assert {value for name, value in (to_fill_in | mentioned).items() if SECRET.search(name)} == {""}
    assert all(SECRET.search(name) for name in to_fill_in)
    assert set(re.findall(r"^#   openssl rand .*\n([A-Z_]+)=$", text, re.MULTILINE)) == to_fill_in.keys()


def test_volumes_are_declared_and_mounted_files_exist(compose):
    assert undeclared_volumes(compose) == set()
    for mount in {mount for used in mounts(compose).values() for mount in used if mount.startswith(".")}:
        assert (ROOT / mount).exists(), mount


def test_airflow_and_spark_share_one_home(compose):
    using = {name for name, used in mounts(compose).items() if "tidemark-home" in used}
    assert using == AIRFLOW | {"spark-worker", "spark-connect", "oplog"}
    assert {compose["services"][name]["environment"]["TIDEMARK_HOME"] for name in using} == {
        "/var/lib/tidemark"
    }


def test_the_server_s_token_crosses_no_network(compose):
    services = compose["services"]
    inside = {name for name in services if services[name].get("network_mode") == "service:task-network"}
    # Tasks run in the scheduler. In the triggerer, a deferred follow asks whether the server answers.
    assert inside == {"airflow-scheduler", "airflow-triggerer", "spark-connect"}
    server, common = services["spark-connect"], services["airflow-scheduler"]["environment"]
    connection = json.loads(VARIABLE.sub("x", common["AIRFLOW_CONN_SPARK_DEFAULT"]))
    options = properties("deploy/spark-connect.conf")
    assert (connection["host"], str(connection["port"])) == (
        "sc://localhost",
        options["spark.connect.grpc.binding.port"],
    )
    assert options["spark.connect.grpc.binding.address"] == "127.0.0.1"
    assert FROM_ENV.fullmatch(server["environment"]["SPARK_CONNECT_AUTHENTICATE_TOKEN"])


def test_services_of_one_network_have_neither_ports_nor_a_name_of_their_own(compose):
    services = compose["services"]
    inside = [one for one in services.values() if one.get("network_mode") == "service:task-network"]
    assert [one.keys() & {"ports", "hostname", "networks"} for one in inside] == [set()] * len(inside)


def test_the_server_hides_what_the_embedded_one_hides(settings):
    ours = server_options(settings, Java(Path("/java"), 17, "17"), Jars(Path("/jars")), "1g", "t")
    options = properties("deploy/spark-connect.conf")
    same = {"spark.python.daemon.module", "spark.connect.session.manager.defaultSessionTimeout"}
    same |= {name for name in ours if "redaction" in name}
    assert {name: options[name] for name in same} == {name: ours[name] for name in same}


def test_the_agent_reaches_what_airflow_reaches_and_nothing_is_open_without_a_token(compose):
    agent, airflow = (compose["services"][name]["environment"] for name in ("oplog", "airflow-scheduler"))
    for key in ("AIRFLOW_CONN_KAFKA_DEFAULT", "AIRFLOW_CONN_CASSANDRA_DEFAULT", "TIDEMARK_HOME"):
        assert agent[key] == airflow[key]
    assert all(FROM_ENV.fullmatch(agent[name]) for name in PASSWORDS)
    assert set(agent) - {PIPELINE, *PASSWORDS, *VARIABLES.values()} == {
        *("AIRFLOW_CONN_KAFKA_DEFAULT", "AIRFLOW_CONN_CASSANDRA_DEFAULT"),
        *("TIDEMARK_HOME", "TIDEMARK_TRANSFORMS"),
    }


def test_ports_are_bound_to_loopback(compose):
    assert open_ports(compose) == []


def test_airflow_services_share_image_and_settings(compose):
    assert {images(compose)[name] for name in AIRFLOW} == {images(compose)["spark-worker"]}
    assert unequal_settings(compose, AIRFLOW) == set()
    common = compose["services"]["airflow-scheduler"]["environment"]
    assert common["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://airflow-api-server:8080/execution/"
    for secret in ("API_AUTH__JWT_SECRET", "API__SECRET_KEY", "CORE__FERNET_KEY"):
        assert FROM_ENV.fullmatch(common[f"AIRFLOW__{secret}"])


def test_our_image_is_built_once_and_never_pulled(compose):
    ours = {
        name: service for name, service in compose["services"].items() if service["image"] == "tidemark:local"
    }
    assert {name for name, service in ours.items() if "build" in service} == {"airflow-init"}
    assert {service["pull_policy"] for name, service in ours.items() if name != "airflow-init"} == {"never"}


def test_only_the_set_up_sees_the_administrators_password(compose):
    services = compose["services"]
    assert {name for name in services if "AIRFLOW_ADMIN_PASSWORD" in str(services[name])} == {"airflow-init"}


@pytest.mark.parametrize("path", ["docker-compose.yaml", *OVERLAYS])
def test_connections_are_what_airflow_reads(path):
    environment = load(path)["services"]["airflow-scheduler"]["environment"]
    found = {key: value for key, value in environment.items() if key.startswith("AIRFLOW_CONN_")}
    assert found
    for key, value in found.items():
        connection = json.loads(VARIABLE.sub("x", value))
        assert key == f"AIRFLOW_CONN_{connection['conn_type'].upper()}_DEFAULT"
        if connection["conn_type"] == "kafka":
            assert connection["extra"]["bootstrap.servers"]
        else:
            assert connection["host"]
            assert connection["port"]


@pytest.mark.parametrize("path", OVERLAYS)
def test_an_overlay_reaches_every_airflow_service_and_leaves_none_waiting(path, compose):
    overlay = load(path)
    assert overlay["services"].keys() <= compose["services"].keys()
    assert overlay["services"].keys() >= AIRFLOW
    assert unequal_settings(overlay, AIRFLOW) == set()
    assert left_waiting(compose, overlay) == []


def test_versions_are_those_of_the_embedded_services(compose):
    ivy = embedded_versions(read("include/tidemark/embedded/jars/ivy.xml"))
    assert unequal_versions(compose, ivy, requirements()) == set()
    assert "apache-airflow" in requirements()


def test_the_image_has_python_java_and_the_pinned_requirements():
    dockerfile = read("Dockerfile")
    assert re.search(r"^FROM python:3\.11-slim-bookworm$", dockerfile, re.MULTILINE)
    assert "openjdk-17-jre-headless" in dockerfile
    assert "-r requirements.txt" in dockerfile
    assert "--no-deps -e ." in dockerfile
    assert "RUN tidemark services fetch --only spark" in dockerfile
    assert "compileall" in dockerfile
    assert "PYTHONDONTWRITEBYTECODE" not in dockerfile


def test_the_image_does_not_run_as_root():
    assert re.findall(r"^USER (\S+)$", read("Dockerfile"), re.MULTILINE)[-1:] == ["tidemark"]


def test_folders_of_our_volumes_are_made_in_the_image(compose):
    """A new volume takes over the owner of the folder it is mounted on; of a missing folder, root's."""
    ours = {name for name, image in images(compose).items() if image == "tidemark:local"}
    targets = {
        volume.split(":")[1]
        for name in ours
        for volume in compose["services"][name].get("volumes", [])
        if not volume.startswith("$")
    }
    assert targets <= set(re.findall(r"/var/lib/\S+", read("Dockerfile")))


def test_scripts_named_in_commands_are_in_the_checkout(compose):
    scripts = re.findall(r"/opt/tidemark/(deploy/[\w.-]+)", str(compose["services"]))
    assert scripts
    assert [script for script in scripts if not (ROOT / script).is_file()] == []


def test_no_image_names_a_registry(compose):
    assert registry_hosts(compose) == set()
    assert re.findall(r"^FROM .*[.:].*/", read("Dockerfile"), re.MULTILINE) == []


def test_secrets_and_local_state_stay_out_of_the_image():
    assert {".env", ".git", ".venv", ".tidemark"} <= set(read(".dockerignore").splitlines())


# Copies with one fault


def change(document: Document, service: str, **settings: Any) -> Document:
    document["services"][service] |= settings
    return document


def test_a_misspelt_key_fails_the_schema(compose):
    assert any("helthcheck" in error for error in schema_errors(change(compose, "kafka", helthcheck={})))


def test_a_bad_condition_fails_the_schema(compose):
    waiting = {"postgres": {"condition": "service_ready"}}
    assert schema_errors(change(compose, "airflow-init", depends_on=waiting))


def test_a_missing_healthcheck_is_seen(compose):
    del compose["services"]["cassandra"]["healthcheck"]
    assert without_healthcheck(compose) == {"cassandra"}


def test_a_missing_restart_policy_is_seen(compose):
    del compose["services"]["postgres"]["restart"]
    assert without_restart(compose) == {"postgres"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("POSTGRES_PASSWORD", "airflow"),
        ("POSTGRES_PASSWORD", "${POSTGRES_PASSWORD:-airflow}"),
        ("AIRFLOW__API_AUTH__JWT_SECRET", ""),
        ("DATABASE", "postgresql://airflow:airflow@postgres/airflow"),
        ("DATABASE", "postgresql://airflow:${PASSWORD:-airflow}@postgres/airflow"),
        ("AIRFLOW_CONN_X", '{"login": "x", "password": "x"}'),
        ("AIRFLOW_CONN_X", '{"extra": {"sasl.password": "x"}}'),
    ],
)
def test_a_literal_secret_is_seen(key, value, compose):
    assert literal_secrets(change(compose, "postgres", environment={key: value})) == [f"postgres: {key}"]


def test_a_secret_in_a_command_is_seen(compose):
    command = ["cqlsh", "--password", "${CASSANDRA_PASSWORD:?set it}"]
    assert secrets_in_commands(change(compose, "cassandra-init", command=command)) == {"cassandra-init"}


def test_variables_are_found_with_their_defaults():
    assert variables("${A:?set A} ${B:-8080}:80 $${HOSTNAME} ${C}") == {"A": None, "B": "8080", "C": None}


def test_env_example_is_read_line_by_line():
    assert example("# A comment=1\nA=\n#B=2\n#   how\n") == ({"A": ""}, {"B": "2"})


def test_waiting_for_a_stranger_or_for_the_impossible_is_seen(compose):
    waiting = {"redis": {"condition": "service_healthy"}, "airflow-init": {"condition": "service_healthy"}}
    found = bad_dependencies(change(compose, "airflow-triggerer", depends_on=waiting))
    assert found == ["airflow-triggerer → redis", "airflow-triggerer → airflow-init"]


def test_a_service_that_insists_on_one_switched_off_is_seen(compose):
    change(compose, "airflow-triggerer", depends_on={"kafka": {"condition": "service_healthy"}})
    assert left_waiting(compose, load("deploy/own-kafka.yaml")) == ["airflow-triggerer → kafka"]


def test_an_undeclared_and_an_unused_volume_are_seen(compose):
    del compose["volumes"]["kafka-data"]
    compose["volumes"]["forgotten"] = None
    assert undeclared_volumes(compose) == {"kafka-data", "forgotten"}


@pytest.mark.parametrize("port", ["8080:8080", "0.0.0.0:8080:8080", 8080])
def test_an_open_port_is_seen(port, compose):
    assert open_ports(change(compose, "kafka", ports=[port])) == [f"kafka: {port}"]


def test_a_secret_that_one_airflow_service_lacks_is_seen(compose):
    del compose["services"]["airflow-triggerer"]["environment"]["AIRFLOW__CORE__FERNET_KEY"]
    assert unequal_settings(compose, AIRFLOW) == {"AIRFLOW__CORE__FERNET_KEY"}


def test_another_version_is_seen(compose):
    ivy = embedded_versions(read("include/tidemark/embedded/jars/ivy.xml"))
    change(compose, "kafka", image="apache/kafka:4.0.0")
    change(compose, "cassandra", image="cassandra:5")
    python = requirements() | {"pyspark": "4.3.0"}
    assert unequal_versions(compose, ivy, python) == {"kafka", "cassandra", "spark", "spark-client"}


def test_a_registry_host_is_seen(compose):
    assert registry_hosts(change(compose, "kafka", image="registry.example:5000/kafka:4.3.1")) == {
        "registry.example:5000/kafka:4.3.1"
    }


# The scripts the one-shot services run


def test_the_administrators_password_is_set_and_others_keep_theirs(tmp_path):
    path = tmp_path / "passwords.json"
    admin_password.write(path, "admin", 'a"b')
    assert json.loads(path.read_text()) == {"admin": 'a"b'}
    path.write_text('{"admin": "old", "eve": "hers"}\n')
    admin_password.write(path, "admin", "new")
    assert json.loads(path.read_text()) == {"admin": "new", "eve": "hers"}
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


class FakeCassandra:
    """Knows roles and their passwords, and what it was told to execute."""

    def __init__(self, **roles: str) -> None:
        self.roles = roles
        self.executed: list[str] = []

    def log_in(self, _host: str, user: str, password: str) -> SimpleNamespace | None:
        if self.roles.get(user) != password:
            return None
        return SimpleNamespace(execute=self.execute, cluster=SimpleNamespace(shutdown=lambda: None))

    def execute(self, statement: str) -> None:
        self.executed.append(statement)
        if created := re.match(r"""CREATE ROLE "(.*)" WITH PASSWORD = '(.*?)' AND""", statement):
            self.roles[created[1]] = created[2].replace("''", "'")
        elif dropped := re.fullmatch(r"DROP ROLE IF EXISTS (\w+)", statement):
            self.roles.pop(dropped[1], None)


@pytest.fixture
def cassandra(monkeypatch) -> FakeCassandra:
    fake = FakeCassandra(cassandra="cassandra")
    monkeypatch.setattr(cassandra_role, "log_in", fake.log_in)
    monkeypatch.setattr(cassandra_role.time, "sleep", lambda _: None)
    return fake


def test_tidemarks_role_takes_the_place_of_the_one_cassandra_is_born_with(cassandra):
    cassandra_role.ensure("cassandra", "tidemark", "it's")
    assert cassandra.roles == {"tidemark": "it's"}


def test_a_second_set_up_changes_nothing(cassandra):
    cassandra.roles = {"tidemark": "x"}
    cassandra_role.ensure("cassandra", "tidemark", "x")
    assert cassandra.executed == ["DROP ROLE IF EXISTS cassandra"]


def test_a_password_that_cassandra_refuses_changes_nothing(cassandra):
    cassandra.roles = {"tidemark": "x"}
    with pytest.raises(SystemExit, match="Nothing was changed"):
        cassandra_role.ensure("cassandra", "tidemark", "y", patience=0)
    assert cassandra.executed == []
