"""Whether a kafka writer could deliver to its topic: a transaction, and what the brokers say of the topic.

The transaction has a transactional id of its own, so that no producer at work is fenced, and it is empty:
a record in it would be seen by every consumer that does not ask for ``read_committed``, which is the default.
What an empty one cannot show is asked for: a leader and enough replicas for every partition, and the right to
write. Sends no message, creates nothing.
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


def probe_id(target: TargetTopic) -> str:
    """The transactional id of probes: one a process, so that brokers do not collect them."""
    return f"tidemark.{target.pipeline}.{target.writer}.probe.{socket.gethostname()}.{os.getpid()}"


def try_topic(target: TargetTopic) -> None:
    """Raise what a delivery would meet; leave nothing behind."""
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
