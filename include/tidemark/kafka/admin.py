"""Short-lived clients for administrative requests. The client's errors are raised as Tidemark's own."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.errors import KafkaError

from tidemark.connections import KafkaConnection
from tidemark.kafka.errors import KafkaFailure

BOOTSTRAP_MS = 10_000
"""Timeout of the first connection to a broker, in milliseconds."""
DELETED_WITHIN_MS = 20_000
_UNKNOWN_TOPIC = 3


@contextmanager
def translating() -> Iterator[None]:
    """Raise the client's errors as ``KafkaFailure``."""
    try:
        yield
    except KafkaError as error:
        raise KafkaFailure(f"{type(error).__name__}: {error}") from error


@contextmanager
def admin_client(connection: KafkaConnection) -> Iterator[KafkaAdminClient]:
    """A client for administrative requests; every error of the client is raised as ``KafkaFailure``."""
    with translating(), KafkaAdminClient(**_options(connection)) as admin:
        yield admin


@contextmanager
def offsets_client(connection: KafkaConnection, isolation: str) -> Iterator[KafkaConsumer]:
    """A client that reads the offsets of many partitions in one request; errors as in ``admin_client``."""
    with translating(), KafkaConsumer(isolation_level=isolation, **_options(connection)) as consumer:
        yield consumer


def delete_topic(connection: KafkaConnection, topic: str) -> None:
    """Delete a topic with everything in it; one that does not exist is left alone.

    Whether it may go is decided by the caller. Raises ``KafkaFailure`` where the broker refuses.
    """
    with admin_client(connection) as admin:
        if topic not in set(admin.list_topics()):
            return
        answer = admin.delete_topics([topic], timeout_ms=DELETED_WITHIN_MS, raise_errors=False)
    for found in answer["topics"]:
        if (code := found["error_code"]) not in (0, _UNKNOWN_TOPIC):
            reason = found.get("error_message") or f"error {code}"
            raise KafkaFailure(f"topic {topic} was not deleted: {reason}")


def _options(connection: KafkaConnection) -> dict[str, Any]:
    return connection.client_options() | {"bootstrap_timeout_ms": BOOTSTRAP_MS}


def broker_problem(host: str, port: int) -> str | None:
    """The reason why no broker answers at this address; None where one does."""
    try:
        socket.create_connection((host, port), timeout=2).close()  # the client would log every refusal
        client = KafkaAdminClient(bootstrap_servers=f"{host}:{port}", request_timeout_ms=5000)
        try:
            brokers = client.describe_cluster()["brokers"]
        finally:
            client.close()
    except (OSError, KafkaError, KeyError) as error:
        return f"{type(error).__name__}: {error}"
    return None if brokers else "no broker is registered yet"
