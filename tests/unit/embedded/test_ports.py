"""Ports: free ones, and a clear word about who holds one that is not."""

import os
import socket

import psutil
import pytest

from tidemark.embedded.errors import PortTaken
from tidemark.embedded.ports import free_port, holder, is_free
from tidemark.embedded.services.service import Program, Service
from tidemark.embedded.services.starting import refuse_taken_ports

pytestmark = pytest.mark.unit


@pytest.fixture
def taken():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def kafka_on(port: int, cwd) -> Service:
    program = Program("kafka", "Kafka", ("true",), {}, cwd, port, "TIDEMARK_KAFKA_PORT")
    return Service("kafka", "Kafka", (program,), lambda: None, lambda since: None, 1.0, "")


def test_a_port_that_is_listened_on_is_not_free(taken):
    assert not is_free(taken)


def test_a_free_port_is_free_and_none_of_those_excluded():
    port = free_port()
    assert is_free(port)
    assert 15_000 <= port < 32_000


def test_a_taken_port_is_told_with_its_holder_and_the_variable_to_change(settings, taken):
    with pytest.raises(PortTaken) as refused:
        refuse_taken_ports(settings, kafka_on(taken, settings.root))
    assert (refused.value.port, refused.value.pid) == (taken, os.getpid())
    assert f"port {taken} is taken by process {os.getpid()} (" in str(refused.value)
    assert "set TIDEMARK_KAFKA_PORT to a free port" in str(refused.value)


def test_when_the_system_does_not_tell_it_is_another_process(settings, taken, monkeypatch):
    def denied(kind):
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "net_connections", denied)
    assert holder(taken) == (None, None)
    with pytest.raises(PortTaken, match="is taken by another process"):
        refuse_taken_ports(settings, kafka_on(taken, settings.root))
