"""Errors of collection writers."""

from tidemark.errors import with_fields
from tidemark.writers.errors import WriterError


@with_fields
class VersionsRemoved(WriterError):
    """A binding cannot be computed again: the rows that its corrections depend on were removed."""

    needs_person = True

    pipeline: str
    writer: str
    t: int
    id: int

    text = (
        "{pipeline}/{writer}: the binding at {t} cannot be computed again: id {id} is a correction, and the "
        "versions of its object from before it were removed (`keep`). Nothing was written, and what readers "
        "get is as it was. Deliver only later bindings again, or build the next rendition from the log: "
        "tidemark renditions build {pipeline} {writer}"
    )


@with_fields
class TablesNotEmpty(WriterError):
    """The tables of a new collection have rows already."""

    needs_person = True

    pipeline: str
    writer: str
    table: str

    text = (
        "{pipeline}/{writer}: table {table} has rows already, or its table of changes has: of a writer that "
        "was forgotten, or of another program. Old and new rows would mix. Nothing was written. Give the "
        "writer another table, or drop both tables where nothing reads them, and run again."
    )
