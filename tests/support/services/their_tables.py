"""What a kafka-journal replicator leaves in its tables, written as it writes: with its own clock's times."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from tests.support.services.journal_histories import Sent

from tidemark.journal.action import append
from tidemark.journal.codec.record import write_action
from tidemark.journal.events import EncodedEvent, Events
from tidemark.journal.segments import head_segment
from tidemark.journal_tables.schema.create import create_journal
from tidemark.pipeline.model import JournalDeclaration

SENT_AT = 1_750_000_000_000
THEIRS = UUID("11111111-2222-4333-8444-555555555555")
"""The record id that the other replicator gave to its entities."""


def given_record(partition: int, number: int) -> Sent:
    """The record with an event of a partition's only entity; its offset is the one before its number."""
    events = Events((EncodedEvent(number, (), "text", f"event {number}"),))
    key, value, timestamp, headers = write_action(append(f"entity-{partition}", SENT_AT + number, events))
    return Sent(partition, key, value, timestamp, headers)


def given_their_tables(
    session: Any, declared: JournalDeclaration, topic: str, pointers: dict[int, int]
) -> None:
    """The entities of the partitions that have pointers, up to there."""
    create_journal(session, "theirs", declared)
    keyspace, now = declared.keyspace, datetime.now(UTC)
    for partition, offset in pointers.items():
        key = f"entity-{partition}"
        for number in range(1, offset + 2):
            place = (key, topic, number, SENT_AT + number, partition, number - 1)
            session.execute(
                f"INSERT INTO {keyspace}.journal (id, topic, segment, seq_nr, timestamp, partition, "
                "offset, meta_record_id, metadata, payload_type, payload_txt) "
                "VALUES (%s, %s, 0, %s, %s, %s, %s, %s, '{}', 'text', %s)",
                (*place, THEIRS, f"event {number}"),
            )
        session.execute(
            f"INSERT INTO {keyspace}.metajournal (topic, segment, id, partition, offset, "
            "segment_size, seq_nr, created, updated, record_id) "
            "VALUES (%s, %s, %s, %s, %s, 10000, %s, %s, %s, %s)",
            (topic, head_segment(key), key, partition, offset, offset + 1, now, now, THEIRS),
        )
        session.execute(
            f"INSERT INTO {keyspace}.pointer2 (topic, partition, offset, created, updated) "
            "VALUES (%s, %s, %s, %s, %s)",
            (topic, partition, offset, now, now),
        )
