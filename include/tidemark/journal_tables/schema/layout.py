"""What a kafka-journal keyspace consists of, and what one has to know of a keyspace to compare the two.

Nothing here asks Cassandra or changes anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidemark.pipeline.model import JournalDeclaration


@dataclass(frozen=True, slots=True)
class Shape:
    """What has to be known of a table before writing into it."""

    columns: Mapping[str, str]
    """Types by name."""
    partition: tuple[str, ...]
    clustering: tuple[str, ...] = ()
    """Names; with `` desc`` behind those that are kept in descending order."""

    @property
    def primary_key(self) -> str:
        """As CQL has it."""
        partition = f"({', '.join(self.partition)})"
        return f"({', '.join([partition, *self.clustering])})"


@dataclass(frozen=True, slots=True)
class Found:
    """What a keyspace has by now."""

    is_there: bool = False
    tables: Mapping[str, Shape] = field(default_factory=dict)
    graces: Mapping[str, int] = field(default_factory=dict)
    """``gc_grace_seconds`` by table."""
    indexed: frozenset[tuple[str, str]] = frozenset()
    """Tables and the columns of theirs that have an index, whatever it is called."""
    version: str | None = None
    """The value of the row ``schema-version``, as somebody wrote it."""


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
    "locks": Shape(
        {"id": "text", "expiry_ms": "bigint", "timestamp": "timestamp", "metadata": "text"},
        partition=("id",),
    ),
}
CREATED = ("journal", "pointer2", "setting", "metajournal")
"""In this order. ``locks`` is not among them: it has to be there before."""
PROMISED = ("journal", "metajournal")
"""What the pointers say is there."""
DATA = (*PROMISED, "pointer2")
INDEXED = ("created_date", "expire_on")
"""Columns of ``metajournal``."""
NEVER_NAMED = {("metajournal", "metadata"), ("setting", "metadata")}
"""Columns that no statement mentions, neither kafka-journal's nor ours: nothing breaks without them."""
OLD_KEYS = {"metadata": "((topic), id)", "pointer": "((topic), partition)"}
"""The primary keys of the tables that are dropped, so that nobody else's table of that name is."""


def name_of(journal: JournalDeclaration, table: str) -> str:
    """What one of ``TABLES`` is called in this keyspace."""
    return str(getattr(journal.tables, table))


def qualified(journal: JournalDeclaration, table: str) -> str:
    """The same, with its keyspace."""
    return f"{journal.keyspace}.{name_of(journal, table)}"
