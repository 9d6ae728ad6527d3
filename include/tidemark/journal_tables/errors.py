"""Errors of a journal keyspace and its schema, each with what an operator can do about it."""

from collections.abc import Sequence

from tidemark.errors import TidemarkError, with_fields


class JournalTablesError(TidemarkError):
    """The tables of a journal cannot be used as they are."""


@with_fields
class SchemaVersionUnknown(JournalTablesError):
    """The keyspace has a schema version of a newer kafka-journal."""

    needs_person = True

    pipeline: str
    keyspace: str
    found: str
    known: int

    text = (
        "{pipeline}: keyspace {keyspace} has schema version {found}, but {known} is the newest that is known "
        "here: writing could break its other users. Nothing was changed or delivered. Upgrade Tidemark, or "
        "name another keyspace."
    )


@with_fields
class SchemaDiffers(JournalTablesError):
    """Tables have the expected names, but their columns or keys are not kafka-journal's."""

    needs_person = True

    pipeline: str
    keyspace: str
    differences: Sequence[str]

    def __str__(self) -> str:
        return (
            f"{self.pipeline}: keyspace {self.keyspace} cannot be written as a journal: "
            f"{'; '.join(self.differences)}. Nothing was delivered. Put the tables right, or name another "
            "keyspace or other tables."
        )


@with_fields
class TablesLost(JournalTablesError):
    """Data tables are missing although pointers vouch for their data. Empty ones would hide the loss."""

    needs_person = True

    pipeline: str
    writer: str
    keyspace: str
    tables: Sequence[str]
    topic: str

    def __str__(self) -> str:
        missing = " and ".join(f"{self.keyspace}.{table}" for table in self.tables)
        return (
            f"{self.pipeline}/{self.writer}: {missing} is missing, although the keyspace has a pointer of "
            f"{self.topic}: it was dropped, and what was delivered into it is gone. It was not made anew, "
            "and nothing was delivered. Restore it with its rows and resume, or rebuild: add a writer with "
            "another keyspace and `start: earliest`, which is filled from the log, and forget this one."
        )
