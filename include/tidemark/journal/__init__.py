"""Actions of a kafka-journal topic and what they do to one entity. Pure: no I/O, no Spark, no Airflow.

A Kafka record becomes an action (``read_action``), the actions of an entity fold onto its head (``fold``),
and what comes out is what to write (``Effect``). The other way round, ``append`` and ``write_action`` make
the record of an action.
"""

from tidemark.journal.action import Action, Append, Delete, Mark, Purge, append
from tidemark.journal.effect import Duplicate, Effect, HeadTombstone, Message, Row, Tombstone
from tidemark.journal.errors import (
    JournalError,
    OutOfOrder,
    Repartitioned,
    Unbounded,
    Undecodable,
    Unwritable,
)
from tidemark.journal.events import Event, Events, PayloadMetadata
from tidemark.journal.expiry import ExpireAfter, duration, expire_on
from tidemark.journal.fold import Fold, fold
from tidemark.journal.head import Head, record_id
from tidemark.journal.payload import decode, encode
from tidemark.journal.record import KafkaRecord, read_action, write_action
from tidemark.journal.segments import head_segment, head_segments, row_segment, stored_segment_size

__all__ = [
    "Action",
    "Append",
    "Delete",
    "Duplicate",
    "Effect",
    "Event",
    "Events",
    "ExpireAfter",
    "Fold",
    "Head",
    "HeadTombstone",
    "JournalError",
    "KafkaRecord",
    "Mark",
    "Message",
    "OutOfOrder",
    "PayloadMetadata",
    "Purge",
    "Repartitioned",
    "Row",
    "Tombstone",
    "Unbounded",
    "Undecodable",
    "Unwritable",
    "append",
    "decode",
    "duration",
    "encode",
    "expire_on",
    "fold",
    "head_segment",
    "head_segments",
    "read_action",
    "record_id",
    "row_segment",
    "stored_segment_size",
    "write_action",
]
