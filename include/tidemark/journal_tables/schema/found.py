"""Reads the current schema of a keyspace: its tables, their columns and indexes, and the stored version.

Queries Cassandra's ``system_schema``, because the driver's metadata may be seconds old. Changes nothing.
"""

from collections import defaultdict
from typing import Any

from tidemark.cassandra.driver import ConsistencyLevel, Session, SimpleStatement
from tidemark.journal_tables.schema.layout import Found, Shape, name_of, qualified
from tidemark.pipeline.model import JournalDeclaration

VERSION_KEY = "schema-version"

_QUERIES = (
    "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = %s",
    "SELECT table_name, gc_grace_seconds FROM system_schema.tables WHERE keyspace_name = %s",
    "SELECT table_name, column_name, type, kind, position, clustering_order FROM system_schema.columns "
    "WHERE keyspace_name = %s",
    "SELECT table_name, options FROM system_schema.indexes WHERE keyspace_name = %s",
)


def read_keyspace(session: Session, journal: JournalDeclaration) -> Found:
    """The keyspace's schema as the coordinating node knows it now."""
    futures = [session.execute_async(query, (journal.keyspace,)) for query in _QUERIES]
    keyspaces, tables, columns, indexes = [list(future.result()) for future in futures]
    shapes = _shapes(columns)
    return Found(
        is_there=bool(keyspaces),
        tables=shapes,
        graces={row.table_name: row.gc_grace_seconds for row in tables},
        indexed=frozenset((row.table_name, row.options["target"]) for row in indexes),
        version=_read_version(session, journal, shapes.get(name_of(journal, "setting"))),
    )


def with_consistency(journal: JournalDeclaration, query: str) -> SimpleStatement:
    """A statement on rows, with the journal's consistency level."""
    level = ConsistencyLevel.name_to_value[journal.consistency.value]
    return SimpleStatement(query, consistency_level=level, is_idempotent=True)


def _read_version(session: Session, journal: JournalDeclaration, setting: Shape | None) -> str | None:
    if setting is None or setting.partition != ("key",) or "value" not in setting.columns:
        return None
    query = f"SELECT value FROM {qualified(journal, 'setting')} WHERE key = %s"
    row = session.execute(with_consistency(journal, query), (VERSION_KEY,)).one()
    return None if row is None else row.value


def _shapes(columns: list[Any]) -> dict[str, Shape]:
    tables = defaultdict(list)
    for row in columns:
        tables[row.table_name].append(row)
    return {
        name: Shape(
            # A static column has one value per partition: it must differ from a regular one of its type.
            {r.column_name: f"static {r.type}" if r.kind == "static" else r.type for r in rows},
            partition=_key(rows, "partition_key"),
            clustering=_key(rows, "clustering"),
        )
        for name, rows in tables.items()
    }


def _key(rows: list[Any], kind: str) -> tuple[str, ...]:
    key = sorted((row for row in rows if row.kind == kind), key=lambda row: row.position)
    return tuple(f"{r.column_name} desc" if r.clustering_order == "desc" else r.column_name for r in key)
