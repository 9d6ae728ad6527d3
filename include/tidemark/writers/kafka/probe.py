"""Whether a kafka writer could deliver to its topic: a transaction, and what the brokers say of the topic.

The transaction has a transactional id of its own, so that no producer at work is fenced, and it is empty:
a record in it would be seen by every consumer that does not ask for ``read_committed``, which is the default.
What an empty one cannot show is asked for: a leader and enough replicas for every partition, and the right to
write. Sends no message, creates nothing.
"""

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from tidemark.writers.kafka.target import (
    ANSWERS_WITHIN,
    Complaints,
    Target,
    TargetFailed,
    client_options,
    count_partitions,
)

MIN_INSYNC = "min.insync.replicas"
_WHAT = "cannot be written to"
_NOT_ALLOWED = frozenset(
    {KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
)
_turn = threading.Lock()
"""One probe at a time in a process: two with the same transactional id would fence each other."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition as the brokers see it."""

    number: int
    has_leader: bool
    in_sync: int


@dataclass(frozen=True, slots=True)
class TopicState:
    """What has to be so before a topic takes messages."""

    partitions: tuple[PartitionState, ...]
    needed: int
    """Replicas that have to be in sync before a write is acknowledged."""
    may_write: bool = True


def refusal_of(state: TopicState) -> str | None:
    """Why a transaction with messages for all partitions would not be committed; None where it would."""
    if not state.may_write:
        return "this user may not write to it"
    for partition in state.partitions:
        if not partition.has_leader:
            return f"partition {partition.number} has no leader"
        if partition.in_sync < state.needed:
            return (
                f"partition {partition.number} has {partition.in_sync} replicas in sync, and {MIN_INSYNC} is "
                f"{state.needed}"
            )
    return None


def probe_id(target: Target) -> str:
    """The transactional id of probes: one a process, so that brokers do not collect them."""
    return f"tidemark.{target.pipeline}.{target.writer}.probe.{socket.gethostname()}.{os.getpid()}"


def try_topic(target: Target) -> None:
    """Raise what a delivery would meet; leave nothing behind."""
    count_partitions(target)
    if refusal := refusal_of(_read_state(target)):
        raise TargetFailed(target, _WHAT, refusal)
    with _turn:
        _commit_nothing(target)


def _commit_nothing(target: Target) -> None:
    complaints = Complaints()
    with _blaming(target, complaints):
        producer = Producer(
            {
                **client_options(target, complaints),
                "transactional.id": probe_id(target),
                "acks": "all",
                "allow.auto.create.topics": False,
            }
        )
        try:
            producer.init_transactions(ANSWERS_WITHIN)
            producer.begin_transaction()
            producer.commit_transaction(ANSWERS_WITHIN)
        finally:
            with suppress(KafkaException):
                producer.close()


def _read_state(target: Target) -> TopicState:
    complaints = Complaints()
    with _blaming(target, complaints):
        admin = AdminClient(client_options(target, complaints))
        asked = admin.describe_topics(
            TopicCollection([target.topic]),
            include_authorized_operations=True,
            request_timeout=ANSWERS_WITHIN,
        )
        found = asked[target.topic].result()
        return TopicState(
            tuple(
                PartitionState(one.id, one.leader is not None and one.leader.id >= 0, len(_present(one.isr)))
                for one in found.partitions
            ),
            _needed(admin, target.topic),
            may_write=_allows(found.authorized_operations),
        )


def _present(nodes: Sequence[Any]) -> list[Any]:
    return [node for node in nodes if node is not None and node.id >= 0]


def _allows(operations: Sequence[AclOperation] | None) -> bool:
    """Whether writing is among them; a broker that does not check rights may not name any."""
    return not operations or bool({AclOperation.WRITE, AclOperation.ALL} & {*operations})


def _needed(admin: AdminClient, topic: str) -> int:
    """How many replicas have to be in sync; 1 where this user may not ask."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    try:
        found = admin.describe_configs([resource], request_timeout=ANSWERS_WITHIN)[resource].result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise
        return 1
    return int(found[MIN_INSYNC].value)


@contextmanager
def _blaming(target: Target, complaints: Complaints) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        reason = complaints.about(error)
        if error.args[0].code() in _NOT_ALLOWED:
            reason += f"; grant this user the transactional ids that begin with tidemark.{target.pipeline}."
        raise TargetFailed(target, _WHAT, reason) from error
