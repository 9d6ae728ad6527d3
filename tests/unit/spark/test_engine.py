"""Engines: which session belongs to which work, how long a server is waited for, what an error means."""

import socket
import threading
from contextlib import closing

import grpc
import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from tests.support.waiting import wait_until

from tidemark.connections import SparkConnection
from tidemark.embedded.ports import free_port
from tidemark.spark.engine import (
    EngineKind,
    OpenEngine,
    _wait_for_server,
    engine_error,
    open_session,
    session_id,
)
from tidemark.spark.errors import EngineRefusedToken, EngineUnavailable

pytestmark = pytest.mark.unit

ADDRESS = "sc://localhost:15002"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))


def failed(code: grpc.StatusCode, condition: str | None = None) -> SparkConnectGrpcException:
    return SparkConnectGrpcException(
        message="text", errorClass=condition, messageParameters={}, grpc_status_code=code
    )


def test_the_next_run_of_the_same_work_has_the_same_session():
    assert session_id("orders.deliver", "/tidemark-1.zip") == session_id("orders.deliver", "/tidemark-1.zip")


def test_other_work_another_library_and_another_home_have_sessions_of_their_own(monkeypatch, tmp_path):
    names = [("orders.deliver", "1"), ("orders.capture", "1"), ("shop.deliver", "1"), ("orders.deliver", "2")]
    found = {session_id(*name) for name in names}
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "elsewhere"))
    assert len(found | {session_id("orders.deliver", "1")}) == 5


def test_a_server_that_is_gone_is_an_engine_that_a_retry_may_find_back():
    error = engine_error(failed(grpc.StatusCode.UNAVAILABLE), ADDRESS)
    assert isinstance(error, EngineUnavailable)
    assert not error.needs_person
    assert "localhost:15002" in str(error)
    assert "tidemark services up" in str(error)


@pytest.mark.parametrize(
    "condition", ["INVALID_HANDLE.SESSION_NOT_FOUND", "INVALID_HANDLE.SESSION_CHANGED", "NO_ACTIVE_SESSION"]
)
def test_a_server_that_was_restarted_is_one_too(condition):
    error = engine_error(failed(grpc.StatusCode.INTERNAL, condition), ADDRESS)
    assert isinstance(error, EngineUnavailable)


def test_a_token_that_is_refused_needs_a_person():
    error = engine_error(failed(grpc.StatusCode.UNAUTHENTICATED), ADDRESS)
    assert isinstance(error, EngineRefusedToken)
    assert error.needs_person


@pytest.mark.parametrize("error", [ValueError("x"), failed(grpc.StatusCode.INTERNAL)])
def test_other_errors_are_not_the_engines(error):
    assert engine_error(error, ADDRESS) is None


def test_a_server_that_never_answers_is_given_up_with_its_address():
    connection = SparkConnection(address=f"sc://localhost:{free_port()}")
    with (
        pytest.raises(EngineUnavailable, match=r"has not answered for 0 s \(Connection refused\)"),
        open_session("orders.deliver", connection, patience=0.2),
    ):
        raise AssertionError("there is no server")


def test_a_server_that_is_starting_is_waited_for():
    port = free_port()
    found = threading.Event()

    def wait() -> None:
        _wait_for_server(SparkConnection(address=f"sc://localhost:{port}"), patience=30.0)
        found.set()

    threading.Thread(target=wait, daemon=True).start()
    assert not found.is_set()
    with closing(socket.create_server(("127.0.0.1", port))):
        wait_until(found.is_set, 10, "the server to be found")


def test_the_summary_says_which_engine_it_was_and_how_long_it_was_waited_for():
    engine = OpenEngine(None, EngineKind.CONNECT, ADDRESS, 1.23456, "attempt-1")
    assert engine.to_dict() == {"kind": "connect", "address": ADDRESS, "waited": 1.235}
