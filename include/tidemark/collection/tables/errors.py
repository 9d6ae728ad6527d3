"""Errors of a collection's tables, each with what an operator can do about it."""

from collections.abc import Sequence

from tidemark.delivery.writer import TargetMissing
from tidemark.errors import TidemarkError, with_fields


class CollectionTablesError(TidemarkError):
    """The tables of a collection cannot be used as they are, or not in the way that was asked for."""


@with_fields
class TableDiffers(CollectionTablesError):
    """A table has the name of a collection's, but other columns or another key."""

    needs_person = True

    pipeline: str
    writer: str
    table: str
    differences: Sequence[str]

    def __str__(self) -> str:
        return (
            f"{self.pipeline}/{self.writer}: there is a table {self.table} already, and it is not this "
            f"collection's: {'; '.join(self.differences)}. Nothing was changed or written. If it is another "
            "program's, give the writer another keyspace or another table. If it is left over from a writer "
            "that is gone and no program reads it, drop it and run again."
        )


@with_fields
class ColumnNameTaken(CollectionTablesError):
    """A declared column has the name of a column that the tables need for themselves."""

    needs_person = True

    pipeline: str
    writer: str
    column: str
    table: str

    text = (
        "{pipeline}/{writer}: a column of the key cannot be called `{column}`, because table {table} has a "
        "column of that name itself. Nothing was created. Give the column another name."
    )


@with_fields
class CollectionMissing(CollectionTablesError, TargetMissing):
    """A table of a collection does not exist."""

    pipeline: str
    writer: str
    table: str

    text = (
        "{pipeline}/{writer}: there is no table {table}. Nothing was written or read. A collection that was "
        "never delivered has none yet; the first delivery creates it. If it was dropped, build the "
        "collection anew from the log, as a further rendition: tidemark renditions {pipeline} {writer}."
    )


@with_fields
class RowDamaged(CollectionTablesError):
    """A stored row lacks a cell that every row is written with."""

    needs_person = True

    table: str
    column: str

    text = (
        "{table}: there is a row without a value for `{column}`, which every row is written with: something "
        "else has written to the table, or deleted from it. Nothing of this read counts. Find out what has "
        "written there, and build the collection anew from the log, as a further rendition."
    )


@with_fields
class KeyRefused(CollectionTablesError):
    """A key that no row of the collection can have."""

    collection: str
    problem: str
    columns: Sequence[str]

    def __str__(self) -> str:
        return (
            f"{self.collection}: {self.problem}. Nothing was read. Give a value of its type for each column "
            f"of the key: {', '.join(self.columns)}."
        )
