"""The consumer groups of kafka-journal's replicators: their members and their offsets.

A group with members means that a replicator is running. Offsets are changed only while a group has none.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as KafkaPartition

from tidemark.connections import KafkaConnection
from tidemark.errors import TidemarkError, with_fields
from tidemark.kafka.admin import admin_client

PATIENCE = 30.0
T = TypeVar("T")


@with_fields
class ReplicatorRuns(TidemarkError):
    """One of the groups has members: a replicator is running."""

    needs_person = True

    pipeline: str
    group: str
    members: tuple[str, ...]
    writer: str | None = None

    def __str__(self) -> str:
        way = (
            (
                f"{self.pipeline}/{self.writer} is stopped: when the group is empty, take its tables over: "
                f"tidemark journal take-over {self.pipeline} {self.writer}."
            )
            if self.writer
            else (
                "Nothing was changed. Stop them, wait until the group is empty (that may take as long as "
                "its session time-out), and try again."
            )
        )
        return (
            f"{self.pipeline}: consumer group {self.group} has members ({', '.join(self.members)}): two "
            f"replicators must not write the same tables. {way}"
        )


def replicator_group(topic: str) -> str:
    """The consumer group of a kafka-journal replicator for a topic, by its default configuration."""
    return f"replicator-{topic}"


def find_members(connection: KafkaConnection, topics: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The members of the topics' groups, without groups that have none. One request for all topics."""
    groups = [replicator_group(topic) for topic in sorted(set(topics))]
    if not groups:
        return {}
    with admin_client(connection) as admin:
        described = patiently(lambda: admin.describe_groups(groups))
    members = {group: tuple(_member(member) for member in one["members"]) for group, one in described.items()}
    return {group: of for group, of in sorted(members.items()) if of}


def refuse_members(pipeline: str, connection: KafkaConnection, topics: Iterable[str]) -> None:
    """Raise ``ReplicatorRuns`` while a replicator reads one of the topics."""
    for group, members in find_members(connection, topics).items():
        raise ReplicatorRuns(pipeline, group, members)


def _member(member: Mapping[str, Any]) -> str:
    return f"{member['client_id']} at {member['client_host'].lstrip('/')}"


def commit_offsets(connection: KafkaConnection, offsets: Mapping[str, Mapping[int, int]]) -> None:
    """Set the offsets at which the groups of these topics continue, by partition."""
    with admin_client(connection) as admin:
        for topic, of in offsets.items():
            next_ones = {
                KafkaPartition(topic, partition): OffsetAndMetadata(offset, "tidemark", -1)
                for partition, offset in of.items()
            }
            patiently(partial(admin.alter_group_offsets, replicator_group(topic), next_ones))


def patiently(ask: Callable[[], T]) -> T:
    """Retry until the broker has a coordinator, which it creates for its first group."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return ask()
        except KafkaError as error:
            if not error.retriable or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
