"""The tables of a kafka-journal keyspace, and the description of an existing keyspace to compare with them.

Data only: neither reads nor changes Cassandra.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidemark.cassandra.schema.lock import COLUMNS, ID_COLUMN
from tidemark.pipeline.model import JournalDeclaration


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns and the primary key of a table."""

    columns: Mapping[str, str]
    """CQL types by column name."""
    partition: tuple[str, ...]
    """The columns of the partition key."""
    clustering: tuple[str, ...] = ()
    """The clustering columns, with the suffix `` desc`` where the order is descending."""

    @property
    def primary_key(self) -> str:
        """The primary key in CQL's notation."""
        partition = f"({', '.join(self.partition)})"
        return f"({', '.join([partition, *self.clustering])})"


@dataclass(frozen=True, slots=True)
class Found:
    """The schema of an existing keyspace."""

    is_there: bool = False
    tables: Mapping[str, Shape] = field(default_factory=dict)
    graces: Mapping[str, int] = field(default_factory=dict)
    """``gc_grace_seconds`` by table."""
    indexed: frozenset[tuple[str, str]] = frozenset()
    """(table, column) pairs that have an index, whatever its name."""
    version: str | None = None
    """The value of the row ``schema-version``, unchecked; None where there is none."""


TABLES: Mapping[str, Shape] = {
    "journal": Shape(
        {
            "id": "text",
            "topic": "text",
            "segment": "bigint",
            "seq_nr": "bigint",
            "partition": "int",
            "offset": "bigint",
            "timestamp": "timestamp",
            "origin": "text",
            "version": "text",
            "meta_record_id": "uuid",
            "tags": "set<text>",
            "metadata": "text",
            "payload_type": "text",
            "payload_txt": "text",
            "payload_bin": "blob",
            "headers": "map<text, text>",
        },
        partition=("id", "topic", "segment"),
        clustering=("seq_nr", "timestamp"),
    ),
    "pointer2": Shape(
        {
            "topic": "text",
            "partition": "int",
            "offset": "bigint",
            "created": "timestamp",
            "updated": "timestamp",
        },
        partition=("topic", "partition"),
    ),
    "setting": Shape(
        {"key": "text", "value": "text", "timestamp": "timestamp", "origin": "text", "metadata": "text"},
        partition=("key",),
    ),
    "metajournal": Shape(
        {
            "id": "text",
            "topic": "text",
            "segment": "bigint",
            "partition": "int",
            "offset": "bigint",
            "segment_size": "int",
            "seq_nr": "bigint",
            "delete_to": "bigint",
            "created": "timestamp",
            "created_date": "date",
            "updated": "timestamp",
            "expire_after": "duration",
            "expire_on": "date",
            "record_id": "uuid",
            "origin": "text",
            "properties": "map<text, text>",
            "metadata": "text",
        },
        partition=("topic", "segment"),
        clustering=("id",),
    ),
    "locks": Shape(COLUMNS, partition=(ID_COLUMN,)),
}
CREATED = ("journal", "pointer2", "setting", "metajournal")
"""The tables to create under the lock, in this order. ``locks`` is created before, because it holds the
lock."""
PROMISED = ("journal", "metajournal")
"""The tables whose data the pointers vouch for."""
DATA = (*PROMISED, "pointer2")
INDEXED = ("created_date", "expire_on")
"""The columns of ``metajournal`` that have an index."""
NEVER_NAMED = {("metajournal", "metadata"), ("setting", "metadata")}
"""Columns that no statement uses, neither kafka-journal's nor ours, so that they may be missing."""
OLD_KEYS = {"metadata": "((topic), id)", "pointer": "((topic), partition)"}
"""The primary keys of the tables that are dropped, to tell them from other tables of the same name."""


def name_of(journal: JournalDeclaration, table: str) -> str:
    """The declared name of one of ``TABLES``, without the keyspace."""
    return str(getattr(journal.tables, table))


def qualified(journal: JournalDeclaration, table: str) -> str:
    """The declared name of one of ``TABLES``, with the keyspace."""
    return f"{journal.keyspace}.{name_of(journal, table)}"
