"""Tokens in a connection: how they are declared, and that no text of one is ever shown."""

import pytest

from tidemark.connections import BadConnection, OtherConnection
from tidemark.operations.filters import OperationFilter
from tidemark.oplog.agent.server.tokens import TokenRole, find_token, tokens_of

pytestmark = pytest.mark.unit

SECRET = "hunter2-hunter2"


def tokens(**connection):
    return tokens_of("oplog_tokens", OtherConnection.from_airflow("oplog_tokens", connection))


def test_readers_and_senders_have_tokens_with_limits():
    entry = {"token": SECRET, "types": ["Video"], "parents": ["a/1"], "expires": "1970-01-01T01:00:00Z"}
    reader, sender = tokens(extra={"readers": {"shop": entry}, "senders": {"cms": "another-token"}})
    assert (reader.name, reader.roles, reader.expires) == ("shop", {TokenRole.READER}, 3_600.0)
    assert reader.limits == OperationFilter(frozenset({"video"}), frozenset({"a/1"}))
    assert (sender.name, sender.roles) == ("cms", {TokenRole.SENDER})


def test_a_password_is_a_token_for_both():
    (token,) = tokens(login="all", password=SECRET)
    assert (token.name, token.roles) == ("all", {TokenRole.READER, TokenRole.SENDER})


@pytest.mark.parametrize(
    "extra",
    [
        *({}, {"reader": {}}, {"readers": [SECRET]}, {"readers": {"a": 7}}, {"readers": {"a": "short"}}),
        *({"readers": {"a": SECRET, "b": SECRET}}, {"readers": {"a": {"token": SECRET, "type": []}}}),
        *({"readers": {"a": {"token": SECRET, "types": SECRET}}}, {"readers": {"a": {"types": []}}}),
        *({"readers": {"a": {"token": SECRET, "expires": "soon"}}}, {"readers": {"a": f"{SECRET}\n"}}),
        {"readers": {"a": {"token": SECRET, "expires": 7}}},
    ],
)
def test_what_is_wrong_is_named_without_a_secret(extra):
    with pytest.raises(BadConnection) as refused:
        tokens(extra=extra)
    assert "oplog_tokens" in str(refused.value)
    assert SECRET not in str(refused.value)


def test_no_text_of_a_token_is_kept():
    (token,) = tokens(password=SECRET)
    assert SECRET not in repr(token)
    assert SECRET.encode() not in repr(vars(type(token))).encode() + repr(token.digest).encode()


def test_a_token_is_found_by_its_whole_text():
    found = tokens(extra={"readers": {"a": SECRET, "b": f"{SECRET}-2"}})
    assert find_token(found, SECRET.encode(), lambda: 0).name == "a"
    for wrong in (b"", SECRET.encode()[:-1], f"{SECRET}-".encode(), b"\xff" * 100):
        assert find_token(found, wrong, lambda: 0) is None
