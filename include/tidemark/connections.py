"""Addresses and credentials of Kafka, Cassandra and Spark, read from Airflow's connections.

Airflow's connections are the only place for secrets. This module converts them for each client library and
passes them to a Spark application in a file that only its owner can read. It never prints a secret, and a
``repr`` masks it.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from tidemark.errors import TidemarkError, with_fields

CONTROL = "cassandra_default"
"""The connection whose cluster holds the control plane."""

CONNECT_PORT = 15002
"""Where a Spark Connect server listens unless it is told otherwise."""

SECRET_NAMES = "(?i)secret|password|token|jaas|keystore"
"""Names of settings whose values Spark must not show."""
SECRET_OPTIONS = f"{SECRET_NAMES}|url"
"""Names of a data source's options whose values Spark must not show."""
SECRET_TEXTS = "(?i)(secret|password|token|jaas|keystore).*"
"""What Spark must not show of a plan's or a request's text: such a name, and the rest of its line."""

_CONNECT = "sc://"
_PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"
_SECURITY_KEYS = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.username",
        "sasl.password",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.endpoint.identification.algorithm",
    }
)


@with_fields
class BadConnection(TidemarkError):
    """A connection is missing, or its fields are invalid."""

    connection: str
    problem: str

    text = "Connection {connection}: {problem}"


class _Connection(BaseModel):
    # A refused value may be a secret: messages name the field, never the value.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @classmethod
    def build(cls, connection: str, **fields: Any) -> Self:
        """Validate the fields of a connection. Raises ``BadConnection``."""
        try:
            return cls(**fields)
        except ValidationError as error:
            what = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise BadConnection(connection, f"{what}. Correct it in Airflow.") from None

    def revealed(self) -> dict[str, Any]:
        """All fields with secrets in clear text: for the file that an application reads."""
        return {
            name: value.get_secret_value() if isinstance(value, SecretStr) else value for name, value in self
        }


class KafkaConnection(_Connection):
    """How to reach Kafka; Airflow's Kafka connection uses librdkafka's names.

    Attributes:
        servers: ``host:port`` of brokers, separated by commas.
        security_protocol: ``PLAINTEXT``, ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``.
        sasl_mechanism: ``PLAIN``, ``SCRAM-SHA-256`` or ``SCRAM-SHA-512``; None without SASL.
        sasl_username: The user; None without SASL.
        sasl_password: The password; None without SASL.
        ca_file: The file with the authority's certificate.
        certificate_file: The file with the client's certificate.
        key_file: The file with the client's key.
        key_password: The password of the client's key.
        check_host: Whether the broker's certificate has to name its host.
    """

    servers: str
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: SecretStr | None = None
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: SecretStr | None = None
    check_host: bool = True

    @classmethod
    def from_airflow(cls, name: str, connection: Mapping[str, Any]) -> "KafkaConnection":
        """Read Airflow's connection, which has everything in ``extra``. Raises ``BadConnection``."""
        extra = _extra_of(name, connection)
        if not extra.get("bootstrap.servers"):
            raise BadConnection(name, 'has no "bootstrap.servers" in its extra. Add it, e.g. "broker:9092".')
        for key in extra:
            if key.startswith(("sasl.", "ssl.", "security.")) and key not in _SECURITY_KEYS:
                known = ", ".join(sorted(_SECURITY_KEYS))
                raise BadConnection(name, f"{key} is not supported. Supported for security: {known}.")
        protocol = str(extra.get("security.protocol", "PLAINTEXT")).upper()
        mechanism = extra.get("sasl.mechanism") or extra.get("sasl.mechanisms")
        if protocol.startswith("SASL") and not (
            mechanism and extra.get("sasl.username") and extra.get("sasl.password")
        ):
            raise BadConnection(name, f"{protocol} needs sasl.mechanism, sasl.username and sasl.password.")
        if mechanism and mechanism.upper() not in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            raise BadConnection(name, f"{mechanism} is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512.")
        return cls.build(
            name,
            servers=extra["bootstrap.servers"],
            security_protocol=protocol,
            sasl_mechanism=mechanism.upper() if mechanism else None,
            sasl_username=extra.get("sasl.username"),
            sasl_password=extra.get("sasl.password"),
            ca_file=extra.get("ssl.ca.location"),
            certificate_file=extra.get("ssl.certificate.location"),
            key_file=extra.get("ssl.key.location"),
            key_password=extra.get("ssl.key.password"),
            check_host=extra.get("ssl.endpoint.identification.algorithm", "https") == "https",
        )

    def client_options(self) -> dict[str, Any]:
        """The arguments for kafka-python's clients."""
        return _given(
            bootstrap_servers=self.servers.split(","),
            security_protocol=self.security_protocol,
            sasl_mechanism=self.sasl_mechanism,
            sasl_plain_username=self.sasl_username,
            sasl_plain_password=_reveal(self.sasl_password),
            ssl_cafile=self.ca_file,
            ssl_certfile=self.certificate_file,
            ssl_keyfile=self.key_file,
            ssl_password=_reveal(self.key_password),
            ssl_check_hostname=self.check_host,
        )

    def librdkafka_options(self) -> dict[str, Any]:
        """The configuration for confluent-kafka's clients."""
        given = {
            "bootstrap.servers": self.servers,
            "security.protocol": self.security_protocol,
            "sasl.mechanism": self.sasl_mechanism,
            "sasl.username": self.sasl_username,
            "sasl.password": _reveal(self.sasl_password),
            "ssl.ca.location": self.ca_file,
            "ssl.certificate.location": self.certificate_file,
            "ssl.key.location": self.key_file,
            "ssl.key.password": _reveal(self.key_password),
            "ssl.endpoint.identification.algorithm": "https" if self.check_host else "none",
        }
        return {key: value for key, value in given.items() if value is not None}

    def spark_options(self) -> dict[str, str]:
        """The options for Spark's Kafka source, which uses the Java client."""
        options = {"bootstrap.servers": self.servers, "security.protocol": self.security_protocol}
        if self.sasl_mechanism:
            module = _PLAIN_LOGIN if self.sasl_mechanism == "PLAIN" else _SCRAM_LOGIN
            user, password = _quoted(self.sasl_username), _quoted(_reveal(self.sasl_password))
            options["sasl.mechanism"] = self.sasl_mechanism
            options["sasl.jaas.config"] = f"{module} required username={user} password={password};"
        if self.ca_file:
            options |= {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": Path(self.ca_file).read_text(),
            }
        if self.certificate_file and self.key_file:
            options |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": Path(self.certificate_file).read_text(),
                "ssl.keystore.key": Path(self.key_file).read_text(),
            }
        if self.key_password:
            options["ssl.key.password"] = self.key_password.get_secret_value()
        if not self.check_host:
            options["ssl.endpoint.identification.algorithm"] = ""
        return {f"kafka.{key}": value for key, value in options.items()}


class CassandraConnection(_Connection):
    """How to reach Cassandra, with the fields of Airflow's Cassandra connection.

    Attributes:
        hosts: Contact points.
        port: Their CQL port.
        user: The user; None without authentication.
        password: The password; None without authentication.
        ca_file: The file with the authority's certificate.
        certificate_file: The file with the client's certificate.
        key_file: The file with the client's key.
        check_host: Whether a node's certificate has to name its host.
        local_dc: The data centre that requests are sent to; None for all data centres.
        control_replication: The replication of the keyspace ``tidemark``, if it has to be created.
    """

    hosts: tuple[str, ...]
    port: int = 9042
    user: str | None = None
    password: SecretStr | None = None
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    check_host: bool = True
    local_dc: str | None = None
    control_replication: dict[str, str] = Field(
        default_factory=lambda: {"class": "SimpleStrategy", "replication_factor": "1"}
    )

    @classmethod
    def from_airflow(cls, name: str, connection: Mapping[str, Any]) -> "CassandraConnection":
        """Read Airflow's connection: hosts separated by commas, TLS in ``ssl_options``."""
        if not connection.get("host"):
            raise BadConnection(name, "has no host. Give one or several, separated by commas.")
        extra = _extra_of(name, connection)
        tls = extra.get("ssl_options") or {}
        if unknown := set(tls) - {"ca_certs", "certfile", "keyfile", "check_hostname"}:
            raise BadConnection(name, f"ssl_options {sorted(unknown)} are not supported.")
        given = _given(
            port=connection.get("port"),
            user=connection.get("login") or None,
            password=connection.get("password") or None,
            ca_file=tls.get("ca_certs"),
            certificate_file=tls.get("certfile"),
            key_file=tls.get("keyfile"),
            check_host=tls.get("check_hostname"),
            local_dc=extra.get("local_dc"),
            control_replication=extra.get("control_replication"),
        )
        hosts = tuple(host.strip() for host in connection["host"].split(","))
        return cls.build(name, hosts=hosts, **given)

    @property
    def uses_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.ca_file is not None or self.certificate_file is not None


class SparkConnection(_Connection):
    """Which engine runs Spark, with the fields of Airflow's Spark connection.

    Attributes:
        address: ``sc://host:port`` for a Spark Connect server; ``local[*]``, ``spark://host:port`` and every
            other master start an application.
        token: What a Connect server requires of its clients; None if it requires nothing.
        use_tls: Whether the connection to a Connect server is encrypted.
        ca_file: The file with the authority's certificate; None for the authorities this machine trusts.
    """

    address: str
    token: SecretStr | None = None
    use_tls: bool = False
    ca_file: str | None = None

    @classmethod
    def from_airflow(cls, name: str, connection: Mapping[str, Any]) -> "SparkConnection":
        """Read Airflow's connection: the master or server as host and port, the token as password."""
        host, port = str(connection.get("host") or ""), connection.get("port")
        if not host:
            raise BadConnection(name, "has no host. Give one, such as sc://localhost:15002 or local[2].")
        if not host.startswith(_CONNECT):
            return cls.build(name, address=f"{host}:{port}" if port else host)
        try:
            place = urlsplit(host)
            where, number = place.hostname, place.port or port or CONNECT_PORT
        except ValueError:
            where, number = None, None
        if not where or place.path.strip("/"):
            raise BadConnection(name, "its host must be sc://HOST:PORT. The token is its password.")
        extra = _extra_of(name, connection)
        token, use_tls = _token(name, connection, extra), _is_true(extra.get("use_ssl"))
        if token and not use_tls and where != "localhost":
            raise BadConnection(
                name,
                f"a token is sent to {where} over TLS only. Set use_ssl to true in its extra; "
                "for a server on this machine, use the host name localhost.",
            )
        given = _given(token=token, use_tls=use_tls, ca_file=extra.get("ca_file"))
        return cls.build(name, address=f"{_CONNECT}{where}:{number}", **given)

    @property
    def is_connect(self) -> bool:
        """Whether it names a Spark Connect server, which stays up, instead of a master."""
        return self.address.startswith(_CONNECT)

    @property
    def endpoint(self) -> tuple[str, int]:
        """The host and port of a Connect server."""
        place = urlsplit(self.address)
        return place.hostname or "", place.port or CONNECT_PORT


class OtherConnection(_Connection):
    """How to reach a service that only one kind of writer knows: the fields of any of Airflow's
    connections."""

    host: str | None = None
    port: int | None = None
    login: str | None = None
    password: SecretStr | None = None
    extra: dict[str, Any] = Field(default_factory=dict, repr=False)
    """May hold secrets, so no ``repr`` shows it."""

    @classmethod
    def from_airflow(cls, name: str, connection: Mapping[str, Any]) -> "OtherConnection":
        """The connection as Airflow keeps it."""
        given = _given(**{key: connection.get(key) or None for key in ("host", "port", "login", "password")})
        return cls.build(name, **given, extra=_extra_of(name, connection))


class Connections(_Connection):
    """The connections of one application.

    Attributes:
        kafka: The connection of the source.
        cassandra: By the name of the connection: a writer may name its own.
        kafka_targets: The targets of Kafka writers, by the name of the connection.
        others: What writers of other packages need, by the name of the connection.
        spark: The engine of an application; None for code that uses no Spark.
    """

    kafka: KafkaConnection
    cassandra: dict[str, CassandraConnection]
    kafka_targets: dict[str, KafkaConnection] = Field(default_factory=dict)
    others: dict[str, OtherConnection] = Field(default_factory=dict)
    spark: SparkConnection | None = None

    @property
    def control(self) -> CassandraConnection:
        """The connection of the control plane."""
        return self.cassandra[CONTROL]

    def write(self, path: Path) -> None:
        """Write the connections to a new file that only this user can read."""
        cassandra = {name: connection.revealed() for name, connection in self.cassandra.items()}
        targets = {name: connection.revealed() for name, connection in self.kafka_targets.items()}
        others = {name: connection.revealed() for name, connection in self.others.items()}
        revealed = {"cassandra": cassandra, "kafka_targets": targets, "others": others}
        spark = self.spark.revealed() if self.spark else None
        _hand_over(path, {"kafka": self.kafka.revealed(), "spark": spark, **revealed})

    @classmethod
    def load(cls, path: Path) -> "Connections":
        """Read the connections that another process wrote."""
        return cls.model_validate_json(path.read_bytes())


class WorkConnections(_Connection):
    """The connections of work journals.

    Attributes:
        cassandra: By the name of the connection.
        spark: The engine of the application that sweeps them.
    """

    cassandra: dict[str, CassandraConnection]
    spark: SparkConnection | None = None

    def write(self, path: Path) -> None:
        """See ``Connections.write``."""
        cassandra = {name: one.revealed() for name, one in self.cassandra.items()}
        spark = self.spark.revealed() if self.spark else None
        _hand_over(path, {"cassandra": cassandra, "spark": spark})

    @classmethod
    def load(cls, path: Path) -> "WorkConnections":
        """Read the connections that another process wrote."""
        return cls.model_validate_json(path.read_bytes())


def _hand_over(path: Path, revealed: Mapping[str, Any]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(revealed, file)


def read_environment_connection(name: str, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """The connection in ``AIRFLOW_CONN_<NAME>``, JSON or a URI; None when it is not set."""
    variable = f"AIRFLOW_CONN_{name.upper()}"
    text = environ.get(variable)
    if not text:
        return None
    if text.lstrip().startswith("{"):
        return _json_object(text, name, f"{variable} is not valid JSON.")
    uri = urlsplit(text)
    hosts = uri.netloc.rpartition("@")[2]
    host, _, port = hosts.rpartition(":") if hosts.rpartition(":")[2].isdecimal() else (hosts, "", "")
    query = dict(parse_qsl(uri.query, keep_blank_values=True))
    broken = f"the __extra__ of {variable} is not valid JSON."
    extra = _json_object(query["__extra__"], name, broken) if "__extra__" in query else query
    return _given(
        host=unquote(host) or None,
        port=int(port) if port else None,
        login=unquote(uri.username) if uri.username else None,
        password=unquote(uri.password) if uri.password else None,
        extra=extra,
    )


def look_up_environment(name: str) -> Mapping[str, Any]:
    """The fields of a connection in this process's environment. Raises ``BadConnection`` without one."""
    if found := read_environment_connection(name, os.environ):
        return found
    raise BadConnection(
        name, f"is not known here. Set AIRFLOW_CONN_{name.upper()}, or give `look_up` a function."
    )


def connection_fields(connection: Any) -> dict[str, Any]:
    """The fields of one of Airflow's connection objects."""
    return {
        "host": connection.host,
        "port": connection.port,
        "login": connection.login,
        "password": connection.password,
        "extra": connection.extra_dejson,
    }


def _extra_of(name: str, connection: Mapping[str, Any]) -> dict[str, Any]:
    extra = connection.get("extra") or {}
    text = extra if isinstance(extra, str) else json.dumps(extra)
    return _json_object(text, name, "its extra is not a JSON object. Correct it in Airflow.")


def _json_object(text: str, name: str, problem: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BadConnection(name, problem)
    return found


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _token(name: str, connection: Mapping[str, Any], extra: Mapping[str, Any]) -> str | None:
    """The token of a Connect server: the password, or the content of the file that ``token_file`` names."""
    if connection.get("password") or not extra.get("token_file"):
        return connection.get("password") or None
    try:
        return Path(extra["token_file"]).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise BadConnection(
            name,
            f"its token_file {extra['token_file']} cannot be read ({error.strerror}). The embedded server "
            "makes it when it starts: tidemark services down --only spark, then tidemark services up.",
        ) from None


def _is_true(value: Any) -> bool:
    """A switch in a connection's extra, which people write as a JSON boolean or as text."""
    return str(value or "").lower() in ("true", "1", "yes")


def _reveal(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None


def _quoted(text: str | None) -> str:
    return '"' + (text or "").replace("\\", "\\\\").replace('"', '\\"') + '"'
