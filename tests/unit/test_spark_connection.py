"""The Spark connection: which engine it names, where the token comes from, and what is refused."""

import pytest

from tidemark.connections import BadConnection, SparkConnection

pytestmark = pytest.mark.unit

SECRET = "hunter2-marker"


def spark(**fields: object) -> SparkConnection:
    return SparkConnection.from_airflow("spark_default", fields)


@pytest.mark.parametrize(
    ("fields", "address"),
    [
        ({"host": "local[2]"}, "local[2]"),
        ({"host": "spark://master", "port": 7077}, "spark://master:7077"),
        ({"host": "spark://master:7077"}, "spark://master:7077"),
        ({"host": "yarn"}, "yarn"),
    ],
)
def test_a_master_starts_an_application(fields, address):
    assert (spark(**fields).address, spark(**fields).is_connect) == (address, False)


@pytest.mark.parametrize(
    "fields",
    [
        {"host": "sc://localhost", "port": 15002},
        {"host": "sc://localhost:15002"},
        {"host": "sc://localhost:15002/", "port": 7},
        {"host": "sc://localhost"},
    ],
)
def test_sc_is_a_connect_server(fields):
    assert spark(**fields).is_connect
    assert spark(**fields).address == "sc://localhost:15002"
    assert spark(**fields).endpoint == ("localhost", 15002)


def test_the_token_is_the_password_and_no_repr_shows_it():
    connection = spark(host="sc://localhost:1", password=SECRET)
    assert connection.token.get_secret_value() == SECRET
    assert SECRET not in repr(connection) + str(connection)


def test_the_token_may_be_in_a_file(tmp_path):
    (tmp_path / "token").write_text(f"{SECRET}\n")
    connection = spark(host="sc://localhost:1", extra={"token_file": str(tmp_path / "token")})
    assert connection.token.get_secret_value() == SECRET


def test_a_file_that_is_gone_is_named_with_what_to_do(tmp_path):
    with pytest.raises(BadConnection, match=r"token_file .*gone cannot be read .*services down --only spark"):
        spark(host="sc://localhost:1", extra={"token_file": str(tmp_path / "gone")})


def test_a_token_leaves_this_machine_over_tls_only():
    with pytest.raises(BadConnection, match=r"to spark\.example over TLS only"):
        spark(host="sc://spark.example:15002", password=SECRET)
    encrypted = spark(host="sc://spark.example:15002", password=SECRET, extra={"use_ssl": True})
    assert encrypted.use_tls


def test_an_own_authority_can_be_given():
    assert spark(host="sc://far:1", extra={"use_ssl": "true", "ca_file": "/ca.pem"}).ca_file == "/ca.pem"


@pytest.mark.parametrize("host", ["", "sc://", "sc://localhost:15002/;token=x", "sc://localhost:port"])
def test_an_address_that_leads_nowhere_is_refused(host):
    with pytest.raises(BadConnection):
        spark(host=host)


def test_a_refusal_does_not_show_what_was_put_into_the_address():
    with pytest.raises(BadConnection) as refused:
        spark(host=f"sc://localhost:15002/;token={SECRET}")
    assert SECRET not in str(refused.value)
