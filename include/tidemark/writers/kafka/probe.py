"""Probe of a kafka writer's topic: an empty transaction, and the topic's state according to the brokers.

The transaction has a transactional id of its own, so that no active producer is fenced. It is empty, because
consumers with the default isolation ``read_uncommitted`` would see a record. What an empty transaction cannot
show is read from the brokers: whether every partition has a leader and enough in-sync replicas, and whether
the user may write. Sends no message, creates nothing.
"""

import os
import socket
import threading
from contextlib import closing
from dataclasses import dataclass

from tidemark.kafka.errors import KafkaFailure, NotAuthorized
from tidemark.kafka.producer import TransactionalProducer
from tidemark.kafka.topics import PartitionState, TopicQuestions
from tidemark.writers.kafka.target import ANSWERS_WITHIN, TargetFailed, TargetTopic, count_partitions

MIN_INSYNC = "min.insync.replicas"
_WHAT = "cannot be written to"
_turn = threading.Lock()
"""One probe at a time in a process: two with the same transactional id would fence each other."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """The state of a topic that decides whether it accepts messages.

    Attributes:
        partitions: Leader and in-sync replicas of each partition.
        needed: In-sync replicas that a write needs.
        may_write: Whether this user may write.
    """

    partitions: tuple[PartitionState, ...]
    needed: int
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


def probe_id(target: TargetTopic) -> str:
    """The transactional id of probes: one per process, so that they do not accumulate in the brokers."""
    return f"tidemark.{target.pipeline}.{target.writer}.probe.{socket.gethostname()}.{os.getpid()}"


def try_topic(target: TargetTopic) -> None:
    """Raise the error that a delivery would get; leaves nothing behind."""
    count_partitions(target)
    try:
        if refusal := refusal_of(_read_state(target)):
            raise TargetFailed(target, _WHAT, refusal)
        with _turn:
            _commit_nothing(target)
    except KafkaFailure as error:
        reason = error.reason
        if isinstance(error, NotAuthorized):
            reason += f"; grant this user the transactional ids that begin with tidemark.{target.pipeline}."
        raise TargetFailed(target, _WHAT, reason) from error


def _commit_nothing(target: TargetTopic) -> None:
    with closing(TransactionalProducer(target.connection, probe_id(target), ANSWERS_WITHIN)) as producer:
        producer.open()
        producer.commit(())


def _read_state(target: TargetTopic) -> TopicState:
    questions = TopicQuestions(target.connection, ANSWERS_WITHIN)
    found = questions.describe(target.topic, with_rights=True)
    needed = questions.setting(target.topic, MIN_INSYNC)
    return TopicState(found.partitions, 1 if needed is None else int(needed), found.may_write)
