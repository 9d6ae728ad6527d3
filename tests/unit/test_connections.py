"""Connections: from Airflow's form to what each client wants, with the secrets kept secret."""

import json
import stat

import pytest

from tidemark.connections import (
    CONTROL,
    BadConnection,
    CassandraConnection,
    Connections,
    KafkaConnection,
    read_environment_connection,
)
from tidemark.errors import TidemarkError

pytestmark = pytest.mark.unit

SECRET = "hunter2-marker"
PLAIN = {
    "bootstrap.servers": "one:9092,two:9092",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "tidemark",
    "sasl.password": SECRET,
}


def kafka(**extra: object) -> KafkaConnection:
    return KafkaConnection.from_airflow(
        "kafka_default", {"extra": {"bootstrap.servers": "broker:9092"} | extra}
    )


def cassandra(**keys: object) -> CassandraConnection:
    return CassandraConnection.from_airflow("cassandra_default", {"host": "db"} | keys)


def given_connections() -> Connections:
    return Connections(
        kafka=kafka(**PLAIN, **{"ssl.key.password": SECRET}),
        cassandra={
            "cassandra_default": cassandra(),
            "far": cassandra(host="a, b", port=9142, login="tidemark", password=SECRET),
        },
        kafka_targets={"kafka_far": kafka(**PLAIN)},
    )


# Kafka


def test_kafka_without_security():
    assert kafka().client_options() == {
        "bootstrap_servers": ["broker:9092"],
        "security_protocol": "PLAINTEXT",
        "ssl_check_hostname": True,
    }
    assert kafka().spark_options() == {
        "kafka.bootstrap.servers": "broker:9092",
        "kafka.security.protocol": "PLAINTEXT",
    }


def test_kafka_with_plain_for_python():
    assert kafka(**PLAIN).client_options() == {
        "bootstrap_servers": ["one:9092", "two:9092"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "tidemark",
        "sasl_plain_password": SECRET,
        "ssl_check_hostname": True,
    }


def test_kafka_with_plain_for_spark():
    assert kafka(**PLAIN).spark_options() == {
        "kafka.bootstrap.servers": "one:9092,two:9092",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="tidemark" password="{SECRET}";'
        ),
    }


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_kafka_with_scram(mechanism):
    connection = kafka(**PLAIN | {"sasl.mechanism": mechanism})
    assert connection.client_options()["sasl_mechanism"] == mechanism
    assert connection.spark_options()["kafka.sasl.mechanism"] == mechanism
    assert connection.spark_options()["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="tidemark" password="{SECRET}";'
    )


def test_kafka_takes_librdkafka_s_other_spellings():
    connection = kafka(
        **{
            "security.protocol": "sasl_plaintext",
            "sasl.mechanisms": "plain",
            "sasl.username": "u",
            "sasl.password": "p",
        }
    )
    assert (connection.security_protocol, connection.sasl_mechanism) == ("SASL_PLAINTEXT", "PLAIN")


@pytest.mark.parametrize(
    ("password", "quoted"),
    [
        ('say "hi"', r'"say \"hi\""'),
        ("back\\slash", r'"back\\slash"'),
        ('\\"', r'"\\\""'),
        ("semi;colon'", '"semi;colon\'"'),
    ],
)
def test_quotes_and_backslashes_cannot_break_out_of_jaas(password, quoted):
    jaas = kafka(**PLAIN | {"sasl.password": password}).spark_options()["kafka.sasl.jaas.config"]
    assert jaas.endswith(f' username="tidemark" password={quoted};')


def test_a_user_name_is_quoted_too():
    jaas = kafka(**PLAIN | {"sasl.username": 'a"b'}).spark_options()["kafka.sasl.jaas.config"]
    assert r'username="a\"b"' in jaas


@pytest.fixture
def certificates(tmp_path) -> dict[str, str]:
    """Three PEM files, by librdkafka's keys."""
    for name in ("ca", "certificate", "key"):
        (tmp_path / f"{name}.pem").write_text(f"-----{name}-----\n")
    return {f"ssl.{name}.location": str(tmp_path / f"{name}.pem") for name in ("ca", "certificate", "key")}


def test_kafka_with_tls_for_python(certificates):
    options = kafka(
        **{"security.protocol": "SSL", "ssl.key.password": SECRET}, **certificates
    ).client_options()
    assert options == {
        "bootstrap_servers": ["broker:9092"],
        "security_protocol": "SSL",
        "ssl_cafile": certificates["ssl.ca.location"],
        "ssl_certfile": certificates["ssl.certificate.location"],
        "ssl_keyfile": certificates["ssl.key.location"],
        "ssl_password": SECRET,
        "ssl_check_hostname": True,
    }


def test_kafka_with_tls_for_spark(certificates):
    options = kafka(
        **{"security.protocol": "SSL", "ssl.key.password": SECRET}, **certificates
    ).spark_options()
    assert options == {
        "kafka.bootstrap.servers": "broker:9092",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": "-----ca-----\n",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "-----certificate-----\n",
        "kafka.ssl.keystore.key": "-----key-----\n",
        "kafka.ssl.key.password": SECRET,
    }


@pytest.mark.parametrize("algorithm", ["", "none"])
def test_kafka_without_a_check_of_the_host(algorithm):
    connection = kafka(**{"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": algorithm})
    assert connection.client_options()["ssl_check_hostname"] is False
    assert connection.spark_options()["kafka.ssl.endpoint.identification.algorithm"] == ""


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
def test_the_options_are_ones_that_kafka_python_knows(certificates):
    from kafka import KafkaAdminClient, KafkaConsumer

    options = kafka(**PLAIN, **{"ssl.key.password": SECRET}, **certificates).client_options()
    assert set(options) <= set(KafkaConsumer.DEFAULT_CONFIG)
    assert set(options) <= set(KafkaAdminClient.DEFAULT_CONFIG)


def test_kafka_with_everything_for_librdkafka_in_its_own_words(certificates):
    given = PLAIN | certificates | {"ssl.key.password": SECRET}
    options = kafka(**given).librdkafka_options()
    assert options == given | {"ssl.endpoint.identification.algorithm": "https"}


def test_kafka_for_librdkafka_without_a_check_of_the_host():
    options = kafka(**{"ssl.endpoint.identification.algorithm": ""}).librdkafka_options()
    assert options == {
        "bootstrap.servers": "broker:9092",
        "security.protocol": "PLAINTEXT",
        "ssl.endpoint.identification.algorithm": "none",
    }


def test_keys_that_are_not_about_security_are_left_alone():
    connection = kafka(**{"group.id": "x", "client.id": "y"})
    assert connection.client_options()["bootstrap_servers"] == ["broker:9092"]


@pytest.mark.parametrize("key", ["sasl.oauthbearer.config", "ssl.keystore.location", "security.providers"])
def test_a_security_key_that_is_not_supported_is_refused_by_name(key):
    with pytest.raises(BadConnection, match=f"^Connection kafka_default: {key} is not supported") as refusal:
        kafka(**{key: SECRET})
    assert refusal.value.connection == "kafka_default"
    assert SECRET not in str(refusal.value)


@pytest.mark.parametrize("extra", [{}, None, "", {"bootstrap.servers": ""}])
def test_kafka_without_servers_is_refused(extra):
    with pytest.raises(BadConnection, match=r'^Connection k: has no "bootstrap\.servers" in its extra'):
        KafkaConnection.from_airflow("k", {"extra": extra})


@pytest.mark.parametrize("missing", ["sasl.mechanism", "sasl.username", "sasl.password"])
def test_sasl_without_all_it_needs_is_refused(missing):
    extra = {key: value for key, value in PLAIN.items() if key != missing}
    with pytest.raises(
        BadConnection, match=r"SASL_SSL needs sasl\.mechanism, sasl\.username and sasl\.password"
    ):
        KafkaConnection.from_airflow("k", {"extra": extra})


def test_a_mechanism_that_is_not_supported_is_refused():
    with pytest.raises(BadConnection, match="GSSAPI is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"):
        kafka(**PLAIN | {"sasl.mechanism": "GSSAPI"})


def test_extra_may_be_text():
    connection = KafkaConnection.from_airflow("k", {"extra": '{"bootstrap.servers": "broker:9092"}'})
    assert connection.servers == "broker:9092"


@pytest.mark.parametrize("extra", ["{broken", "[1]", "7", '"text"'])
def test_extra_that_is_no_json_object_is_refused_by_name(extra):
    with pytest.raises(BadConnection, match=r"^Connection k: its extra is not a JSON object"):
        KafkaConnection.from_airflow("k", {"extra": extra})


# Cassandra


def test_cassandra_with_a_host_alone():
    assert cassandra() == CassandraConnection(hosts=("db",), port=9042)
    assert not cassandra().uses_tls


def test_cassandra_with_everything():
    connection = cassandra(
        host="a, b,c",
        port=9142,
        login="tidemark",
        password=SECRET,
        extra={
            "ssl_options": {
                "ca_certs": "/ca",
                "certfile": "/crt",
                "keyfile": "/key",
                "check_hostname": False,
            },
            "local_dc": "dc1",
            "control_replication": {"class": "NetworkTopologyStrategy", "dc1": "3"},
        },
    )
    assert connection.hosts == ("a", "b", "c")
    assert (connection.port, connection.user) == (9142, "tidemark")
    assert connection.password.get_secret_value() == SECRET
    assert (connection.ca_file, connection.certificate_file, connection.key_file) == ("/ca", "/crt", "/key")
    assert (connection.check_host, connection.local_dc, connection.uses_tls) == (False, "dc1", True)
    assert connection.control_replication == {"class": "NetworkTopologyStrategy", "dc1": "3"}


def test_the_control_plane_has_one_copy_unless_declared_otherwise():
    assert cassandra().control_replication == {"class": "SimpleStrategy", "replication_factor": "1"}


@pytest.mark.parametrize("host", [None, ""])
def test_cassandra_without_a_host_is_refused(host):
    with pytest.raises(BadConnection, match=r"^Connection cassandra_default: has no host"):
        cassandra(host=host)


def test_an_unknown_tls_option_is_refused_by_name():
    with pytest.raises(BadConnection, match=r"ssl_options \['ciphers'\] are not supported"):
        cassandra(extra={"ssl_options": {"ca_certs": "/ca", "ciphers": "x"}})


def test_a_port_that_is_no_number_is_refused_by_name():
    with pytest.raises(BadConnection, match=r"^Connection cassandra_default: .*port"):
        cassandra(port="cql")


# Secrets


@pytest.mark.parametrize("show", [repr, str, lambda c: c.model_dump(), lambda c: c.model_dump_json()])
@pytest.mark.parametrize("of", [lambda c: c, lambda c: c.kafka, lambda c: c.cassandra["far"]])
def test_a_connection_never_shows_its_secrets(show, of):
    assert SECRET not in str(show(of(given_connections())))


def test_a_secret_that_is_not_text_is_not_shown_either():
    with pytest.raises(Exception, match=r"kafka_default|sasl") as refusal:
        kafka(**PLAIN | {"sasl.password": [SECRET]})
    assert SECRET not in str(refusal.value)


def test_a_torn_file_of_connections_does_not_show_its_secrets(tmp_path):
    given_connections().write(tmp_path / "connections.json")
    text = (tmp_path / "connections.json").read_text()
    torn = tmp_path / "torn.json"
    torn.write_text(text[: text.index(SECRET) + len(SECRET)])
    with pytest.raises(ValueError, match=r".") as refusal:
        Connections.load(torn)
    assert SECRET not in str(refusal.value)


def test_a_bad_connection_is_for_a_person():
    assert issubclass(BadConnection, TidemarkError)


# Handing over


def test_connections_come_back_from_their_file_with_their_secrets(tmp_path):
    given_connections().write(tmp_path / "connections.json")
    loaded = Connections.load(tmp_path / "connections.json")
    assert loaded == given_connections()
    assert loaded.kafka.sasl_password.get_secret_value() == SECRET
    assert loaded.kafka.key_password.get_secret_value() == SECRET
    assert loaded.cassandra["far"].password.get_secret_value() == SECRET


def test_the_file_can_be_read_by_its_owner_alone(tmp_path):
    given_connections().write(tmp_path / "connections.json")
    assert stat.S_IMODE((tmp_path / "connections.json").stat().st_mode) == 0o600


def test_a_file_that_is_there_is_not_overwritten(tmp_path):
    (tmp_path / "connections.json").write_text("somebody's")
    with pytest.raises(FileExistsError):
        given_connections().write(tmp_path / "connections.json")
    assert (tmp_path / "connections.json").read_text() == "somebody's"


def test_the_control_plane_is_on_cassandra_default():
    assert CONTROL == "cassandra_default"
    assert given_connections().control.hosts == ("db",)


# AIRFLOW_CONN_…


def read(text: str) -> dict[str, object] | None:
    return read_environment_connection("cassandra_default", {"AIRFLOW_CONN_CASSANDRA_DEFAULT": text})


@pytest.mark.parametrize("environ", [{}, {"AIRFLOW_CONN_CASSANDRA_DEFAULT": ""}])
def test_a_variable_that_is_not_set_is_no_connection(environ):
    assert read_environment_connection("cassandra_default", environ) is None


def test_a_connection_as_json():
    text = '  {"conn_type": "cassandra", "host": "a,b", "port": 9142, "extra": {"local_dc": "dc1"}}'
    connection = CassandraConnection.from_airflow("cassandra_default", read(text))
    assert connection == CassandraConnection(hosts=("a", "b"), port=9142, local_dc="dc1")


def test_a_connection_as_json_with_extra_as_text():
    text = json.dumps({"host": "a", "extra": '{"local_dc": "dc1"}'})
    assert CassandraConnection.from_airflow("cassandra_default", read(text)).local_dc == "dc1"


def test_a_connection_as_uri_with_several_hosts_and_a_port():
    assert read("cassandra://a,b:9142") == {"host": "a,b", "port": 9142, "extra": {}}


def test_a_connection_as_uri_without_a_port():
    assert read("cassandra://a,b/") == {"host": "a,b", "extra": {}}


def test_a_connection_as_uri_with_encoded_login_and_password():
    assert read("cassandra://us%40er:p%40ss%2Fw%3Ard%25@a:9042") == {
        "host": "a",
        "port": 9042,
        "login": "us@er",
        "password": "p@ss/w:rd%",
        "extra": {},
    }


def test_a_connection_as_uri_with_encoded_hosts():
    assert read("cassandra://a%2Cb:9042")["host"] == "a,b"


def test_a_connection_as_uri_with_extra_in_the_query():
    assert read("cassandra://a?local_dc=dc%201") == {"host": "a", "extra": {"local_dc": "dc 1"}}


def test_a_connection_as_uri_with_the_whole_extra_as_json():
    text = "kafka://?__extra__=%7B%22bootstrap.servers%22%3A+%22broker%3A9092%22%7D"
    assert read(text) == {"extra": {"bootstrap.servers": "broker:9092"}}


def test_an_empty_value_in_the_query_is_kept_as_airflow_keeps_it():
    found = read("kafka://?bootstrap.servers=b%3A9092&ssl.endpoint.identification.algorithm=")
    assert found["extra"] == {"bootstrap.servers": "b:9092", "ssl.endpoint.identification.algorithm": ""}


@pytest.mark.parametrize("text", ['{"host": ', "cassandra://a?__extra__=%7Bbroken"])
def test_bad_json_is_refused_by_the_name_of_the_variable(text):
    with pytest.raises(BadConnection, match="AIRFLOW_CONN_CASSANDRA_DEFAULT is not valid JSON"):
        read(text)


def test_bad_json_does_not_show_what_is_in_it():
    with pytest.raises(BadConnection) as refusal:
        read('{"password": "' + SECRET)
    assert SECRET not in str(refusal.value)
    assert refusal.value.__cause__ is None
