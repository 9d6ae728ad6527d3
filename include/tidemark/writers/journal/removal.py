"""Drops the tables of a rendition of a journal, where they hold no topic of another pipeline.

A journal's tables may be read by kafka-journal's clients, which no control plane knows, so an operator has to
ask for it. Several pipelines may share a keyspace, each with topics of its own. The keyspace stays, with the
table of the schema lock: other programs may have tables in it.
"""

from collections.abc import Collection
from dataclasses import dataclass

from tidemark.cassandra.schema.removal import drop_tables, existing
from tidemark.cassandra.session import connect
from tidemark.connections import CassandraConnection
from tidemark.journal_tables.schema.layout import CREATED, name_of, qualified
from tidemark.pipeline.journal import JournalDeclaration
from tidemark.writers.removal import DropOption, PlaceContents

ORDER = ("pointer2", "metajournal", "journal", "setting")
"""Pointers go first: they vouch for the data of the others."""
_WITH_TOPICS = {"pointer2": "topic, partition", "metajournal": "topic, segment"}
"""The tables that tell which topics there are, with their partition keys."""
SHOWN = 5
"""The topics that a refusal names."""


@dataclass(frozen=True)
class JournalRemoval:
    """See ``PlaceRemoval``.

    Attributes:
        pipeline: The pipeline's name, for errors.
        declared: The writer at the rendition's place.
        connection: Cassandra.
        topics: The topics of the pipeline.
    """

    pipeline: str
    declared: JournalDeclaration
    connection: CassandraConnection
    topics: frozenset[str]

    @property
    def option(self) -> DropOption | None:
        """See ``PlaceRemoval.option``."""
        return DropOption.TABLES

    def look(self) -> PlaceContents:
        """See ``PlaceRemoval.look``."""
        found = self._existing(CREATED)
        what = f"the journal's tables in keyspace {self.declared.keyspace}"
        return PlaceContents(what, bool(found), ", ".join(found), self._foreign(found) if found else None)

    def drop(self) -> None:
        """See ``PlaceRemoval.drop``."""
        names = [name_of(self.declared, table) for table in ORDER]
        locks = name_of(self.declared, "locks")
        drop_tables(connect(self.connection), self.pipeline, self.declared.keyspace, names, locks)

    def _existing(self, tables: Collection[str]) -> list[str]:
        names = [name_of(self.declared, table) for table in tables]
        return existing(connect(self.connection), self.declared.keyspace, names)

    def _foreign(self, found: Collection[str]) -> str | None:
        session, topics = connect(self.connection), set[str]()
        for table, key in _WITH_TOPICS.items():
            if name_of(self.declared, table) in found:
                rows = session.execute(f"SELECT DISTINCT {key} FROM {qualified(self.declared, table)}")
                topics.update(row.topic for row in rows)
        others = sorted(topics - self.topics)
        if not others:
            return None
        more = f" and {len(others) - SHOWN} more" if len(others) > SHOWN else ""
        return f"they hold topics that this pipeline never read: {', '.join(others[:SHOWN])}{more}"
