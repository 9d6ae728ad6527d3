"""The section ``agent`` of a pipeline file: its defaults, and what it refuses."""

from datetime import timedelta

import pytest
from pydantic import ValidationError
from tests.support.pipeline_files import FILES, HEAD, check

from tidemark.pipeline.agent import AgentDeclaration, UdpMode, UnknownId, is_loopback

pytestmark = pytest.mark.unit


def declared(**keys) -> AgentDeclaration:
    return AgentDeclaration.model_validate(keys)


def refused(**keys) -> str:
    with pytest.raises(ValidationError) as error:
        declared(**keys)
    return str(error.value)


def test_h10_the_defaults_are_those_of_the_original_on_the_loopback_address():
    agent = declared()
    assert (agent.address, agent.queue, agent.heartbeat) == (
        ("127.0.0.1", 8042),
        100_000,
        timedelta(seconds=25),
    )
    assert (agent.udp, agent.unknown_id, agent.tokens) == (UdpMode.LOOPBACK, UnknownId.FALLBACK, None)


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("localhost:1", ("localhost", 1)),
        ("[::1]:8042", ("::1", 8042)),
        ("127.0.0.9:65535", ("127.0.0.9", 65535)),
    ],
)
def test_an_address_has_a_host_and_a_port(listen, address):
    assert declared(listen=listen).address == address


@pytest.mark.parametrize("listen", ["8042", "127.0.0.1", ":8042", "::1:8042", "a:0", "a:65536", "a:８０", ""])
def test_what_is_no_address_is_refused(listen):
    assert "is not an address" in refused(listen=listen)


def test_an_agent_that_other_machines_reach_needs_tokens():
    assert "other machines reach" in refused(listen="0.0.0.0:8042")
    assert declared(listen="0.0.0.0:8042", tokens="oplog_tokens").tokens == "oplog_tokens"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("10.0.0.1", False),
        ("a.example", False),
    ],
)
def test_which_hosts_only_this_machine_reaches(host, expected):
    assert is_loopback(host) is expected


@pytest.mark.parametrize("url", ["ftp://a/{{id}}", "https://a/", "https://a/ {{id}}", "https://a/\n{{id}}"])
def test_an_object_url_is_a_url_with_the_object_s_id(url):
    assert "object_url" in refused(object_url=url)


@pytest.mark.parametrize("origin", ["shop.example", "https://shop.example/", "https://a https://b", "null"])
def test_an_origin_has_a_scheme_and_a_host_only(origin):
    assert "is not an origin" in refused(cors=[origin])


def test_an_interval_is_a_second_or_longer():
    assert "must be `1s` or longer" in refused(heartbeat="0s")


def test_a_secret_is_not_taken_and_not_repeated(tmp_path):
    content = FILES.replace("writers:", "agent: {token: hunter2}\nwriters:")
    check(tmp_path, HEAD + content, 3, "Secrets belong in a connection")


def test_an_agent_needs_operations(tmp_path):
    content = "source: {kafka: {topics: [orders], format: json}}\n"
    file = "name: orders\n" + content + "agent: {}\n" + FILES
    check(tmp_path, file, 3, "needs messages in format `oplog`, but source.kafka.format is `json`")
