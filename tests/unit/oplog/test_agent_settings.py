"""The settings of a running agent: options before the environment, the environment before the file."""

import pytest
from tests.support.fake_kafka import NOWHERE

from tidemark.oplog.agent.errors import BadAgentSetting, OpenToAll
from tidemark.oplog.agent.server.tokens import TokenRole
from tidemark.oplog.agent.settings import AgentSettings, changed, password_tokens
from tidemark.pipeline.agent import AgentDeclaration, UdpMode

pytestmark = pytest.mark.unit

FILE = AgentDeclaration.model_validate({"queue": 7, "heartbeat": "5s", "listen": "127.0.0.1:1"})


def test_what_nothing_changes_is_as_the_file_says():
    assert changed(FILE, {}, {"listen": None}) == FILE


def test_h11_the_environment_goes_before_the_file_and_an_option_before_both():
    environ = {"OPLOGD_LISTEN": "127.0.0.1:2", "OPLOGD_MAX_QUEUED_EVENTS": "9", "OPLOGD_UDP": "closed"}
    found = changed(FILE, environ, {"listen": "127.0.0.1:3"})
    assert (found.listen, found.queue, found.udp) == ("127.0.0.1:3", 9, UdpMode.CLOSED)
    assert found.heartbeat == FILE.heartbeat


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"OPLOGD_LISTEN": "nowhere"}, "which is not an address"),
        ({"OPLOGD_MAX_QUEUED_EVENTS": "many"}, "`queue` must be a whole number"),
        ({"OPLOGD_LISTEN": "0.0.0.0:1"}, "`tokens` is missing"),
        ({"OPLOGD_UDP": "opne"}, "Did you mean `open`?"),
    ],
)
def test_a_bad_variable_is_one_sentence(environ, said):
    with pytest.raises(BadAgentSetting) as refused:
        changed(FILE, environ, {})
    assert said in str(refused.value)


def test_h9_h11_the_two_passwords_are_tokens_of_a_reader_and_of_a_sender():
    reader, sender = password_tokens({"OPLOGD_PASSWORD": "hunter2-a", "OPLOGD_INGEST_PASSWORD": "hunter2-b"})
    assert (reader.roles, sender.roles) == ({TokenRole.READER}, {TokenRole.SENDER})


def test_an_address_that_others_reach_is_allowed_with_a_password():
    environ = {"OPLOGD_LISTEN": "0.0.0.0:1", "OPLOGD_PASSWORD": "hunter2-a"}
    found = changed(FILE, environ, {})
    assert (
        AgentSettings("shop", "oplog", NOWHERE, found, password_tokens(environ)).declared.listen
        == "0.0.0.0:1"
    )


def test_a_short_password_is_refused_without_being_shown():
    with pytest.raises(BadAgentSetting) as refused:
        password_tokens({"OPLOGD_PASSWORD": "hunter2"})
    assert "hunter2" not in str(refused.value)


def test_an_agent_that_other_machines_reach_needs_a_token_when_it_starts():
    open_to_all = AgentDeclaration.model_validate({"listen": "0.0.0.0:1", "tokens": "oplog_tokens"})
    with pytest.raises(OpenToAll):
        AgentSettings("shop", "oplog", NOWHERE, open_to_all)
