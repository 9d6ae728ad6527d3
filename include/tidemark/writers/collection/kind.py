"""How the kind ``collection`` declares itself: its keys, what it needs and what it claims. Imports no
writer."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from tidemark.collection.model.envelopes.envelope import GIVEN_COLUMNS, EnvelopeName
from tidemark.collection.model.key_format import KeyFormat
from tidemark.collection.model.schema import CollectionSchema
from tidemark.connections import Connections
from tidemark.pipeline import checks
from tidemark.pipeline.journal import Consistency, Keyspace, Replication
from tidemark.pipeline.kinds import OPLOG
from tidemark.pipeline.model import Pipeline
from tidemark.pipeline.parts import ConnectionId, Count, Duration
from tidemark.pipeline.problems import Disagreement, Finding
from tidemark.pipeline.transforms import TransformsOfRows
from tidemark.pipeline.writers import (
    NOT_RECREATED,
    ConnectionType,
    NeededConnection,
    TargetClaim,
    WriterClaim,
    WriterDeclaration,
    WriterKind,
    WriterStart,
    never_at,
)
from tidemark.writers.collection.columns import DataColumns, DeclaredColumn, KeyColumns, as_columns

if TYPE_CHECKING:
    from tidemark.writers.collection.removal import CollectionRemoval
    from tidemark.writers.collection.writer import CollectionWriter

CHANGES = "_changes"
"""What follows a table's name in the name of its table of changes."""
LONGEST_TABLE = 33
"""Cassandra's limit is 48, and names such as ``<table>_r12345_changes`` are derived."""
APPEND_KEY = DeclaredColumn("message", "bigint")
"""The key of a collection with the envelope ``append`` where the file names none."""

_DERIVED = re.compile(r".*(_changes|_r[0-9]+)")

_NOT_LATEST = never_at(
    WriterStart.LATEST,
    "cannot be `latest` for a collection: one that begins in the middle is not the state of its topic. "
    "Use `earliest`.",
)


def check_table(text: str) -> str:
    """The name of a collection's table: a CQL name that no other table's name is derived as."""
    checks.identifier(text)
    if _DERIVED.fullmatch(text):
        raise ValueError(
            f"is `{text}`. Names that end in `{CHANGES}`, or in `_r` and a number, belong to the tables that "
            "are made for a collection. Choose another name."
        )
    if len(text) > LONGEST_TABLE:
        raise ValueError(
            f"is longer than {LONGEST_TABLE} characters. Cassandra's limit is 48, and further tables are "
            "named after it. Shorten it."
        )
    return text


class CollectionDeclaration(WriterDeclaration):
    """Writes rows by key into a table of Cassandra, in every version that they had."""

    unshaping: ClassVar[frozenset[str]] = WriterDeclaration.unshaping | {"keep", "replication", "consistency"}
    has_times: ClassVar[bool] = True

    kind: Literal["collection"]
    keyspace: Keyspace = "collections"
    table: Annotated[str, AfterValidator(check_table)] | None = None
    """None: the writer's name."""
    envelope: EnvelopeName
    key: KeyColumns = ()
    key_format: KeyFormat | None = None
    """None: raw for a single column of text or bytes, JSON for others and for `debezium`."""
    columns: DataColumns
    """Given by the envelope with `oplog`, as the key is."""
    transforms: TransformsOfRows = ()
    shards: Annotated[Count, Field(ge=1, le=1024)] = 8
    keep: Duration | None = None
    """How long versions stay that a later one has replaced; None: for ever."""
    replication: Replication | None = None
    """Left out: three copies where there are nodes for them, else one."""
    consistency: Consistency = Consistency.LOCAL_QUORUM
    connection: ConnectionId = "cassandra_default"
    start: Annotated[WriterStart, NOT_RECREATED, _NOT_LATEST] = WriterStart.EARLIEST

    @property
    def needs_every_message(self) -> bool:
        """See ``WriterDeclaration``."""
        from tidemark.writers.collection.compacted import refusal_of  # imports the transforms

        return refusal_of(self) is not None

    @property
    def needed_formats(self) -> frozenset[str] | None:
        """See ``WriterDeclaration``: the envelope ``oplog`` reads operations."""
        return frozenset({OPLOG}) if self.envelope is EnvelopeName.OPLOG else self.formats

    @property
    def key_of_formats(self) -> str:
        """See ``WriterDeclaration``."""
        return "envelope" if self.envelope is EnvelopeName.OPLOG else super().key_of_formats

    @property
    def removes_versions(self) -> bool:
        """See ``WriterDeclaration``."""
        return self.keep is not None

    @property
    def table_name(self) -> str:
        """The table of the first rendition."""
        return self.table or self.name

    @property
    def schema_of_rows(self) -> CollectionSchema:
        """The columns with their types, and the number of shards."""
        return CollectionSchema(as_columns(self.key), as_columns(self.columns), self.shards)

    def connections(self) -> Iterable[NeededConnection]:
        """See ``WriterDeclaration``."""
        yield NeededConnection(ConnectionType.CASSANDRA, self.connection)

    def claims(self) -> Iterable[WriterClaim]:
        """See ``WriterDeclaration``: both of its tables."""
        key = "name" if self.table is None else "table"
        for table in (self.table_name, self.table_name + CHANGES):
            identity = (ConnectionType.CASSANDRA, self.connection, self.keyspace, table)
            yield TargetClaim(key, f"{self.keyspace}.{table}", identity)

    @property
    def place(self) -> str:
        """See ``WriterDeclaration``: ``keyspace.table``."""
        return f"{self.keyspace}.{self.table_name}"

    def sibling(self, place: str, number: int) -> str:
        """See ``WriterDeclaration``."""
        return f"{place}_r{number}"

    def at_place(self, place: str) -> Self:
        """See ``WriterDeclaration``."""
        keyspace, _, table = place.partition(".")
        return self.model_copy(update={"keyspace": keyspace, "table": table})

    @model_validator(mode="before")
    @classmethod
    def _fills_in_what_the_envelope_gives(cls, data: Any) -> Any:
        """The id of a message is the key of an append; an operation has columns of its own."""
        if not isinstance(data, dict):
            return data
        if data.get("envelope") == EnvelopeName.APPEND:
            return {"key": [APPEND_KEY], **data}
        if data.get("envelope") == EnvelopeName.OPLOG:
            given = GIVEN_COLUMNS[EnvelopeName.OPLOG]
            return {"key": list(given.key.items()), "columns": list(given.data.items()), **data}
        return data

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        findings = [
            *self._unusable_name(),
            *self._key_problems(),
            *self._twice(),
            *self._deletes_appended(),
            *self._given_by_the_envelope(),
        ]
        if findings:
            raise Disagreement(findings)
        return self

    def _unusable_name(self) -> Iterator[Finding]:
        if self.table is not None:
            return
        try:
            check_table(self.name)
        except ValueError as error:
            yield Finding(
                ("name",),
                f"{error} The table gets the writer's name. To keep that name for the writer, give the table "
                "another one with the key `table`.",
            )

    def _key_problems(self) -> Iterator[Finding]:
        if self.envelope is EnvelopeName.APPEND:
            if len(self.key) != 1 or self.key[0].type != APPEND_KEY.type:
                yield Finding(
                    ("key",),
                    "must be one column of type `bigint` with the envelope `append`, because the id of a "
                    f"message is its key. Write {{{APPEND_KEY.name}: bigint}}, or remove it.",
                )
            if self.key_format is not None:
                yield Finding(
                    ("key_format",),
                    "is not taken with the envelope `append`, which does not read the key of a message. "
                    "Remove it, or declare the key as a column where the value has it.",
                )
            return
        if not self.key:
            yield Finding(
                ("key",),
                "names no column. Name at least one, such as {id: text} for a message key that is text.",
            )
        if self.key_format is KeyFormat.RAW and len(self.key) > 1:
            yield Finding(
                ("key_format",),
                f"is `raw`, which is the value of one column, and the key has {len(self.key)}. Remove it: a "
                "JSON object has several.",
            )

    def _given_by_the_envelope(self) -> Iterator[Finding]:
        """Columns of another name or type; rows of a file that names those of the envelope are the same."""
        if (given := GIVEN_COLUMNS.get(self.envelope)) is None:
            return
        for name, declared, columns in (
            ("key", self.key, given.key),
            ("columns", self.columns, given.data),
        ):
            if declared != tuple(columns.items()):
                shown = ", ".join(f"{column}: {type_}" for column, type_ in columns.items())
                yield Finding(
                    (name,),
                    f"is not taken with the envelope `{self.envelope}`, which gives it: {{{shown}}}. "
                    "Remove it.",
                )
        if self.key_format is not None:
            yield Finding(
                ("key_format",),
                f"is not taken with the envelope `{self.envelope}`: the key is `type/id`. Remove it.",
            )
        if self.transforms:
            yield Finding(
                ("transforms",),
                f"are not taken with the envelope `{self.envelope}`: which corrections are void depends on "
                "every operation of an object. Remove them; streams have filters of their own.",
            )

    def _twice(self) -> Iterator[Finding]:
        of_the_key = {column.name for column in self.key}
        for column in self.columns:
            if column.name in of_the_key:
                yield Finding(
                    ("columns", column.name),
                    "is a column of the key too. Remove one of them: the key is read from the message key.",
                )

    def _deletes_appended(self) -> Iterator[Finding]:
        if self.envelope is not EnvelopeName.APPEND:
            return
        for number, transform in enumerate(self.transforms):
            if key := transform.deleting_key:
                yield Finding(
                    ("transforms", number, transform.called, key),
                    "is `delete`, and with the envelope `append` every message is a row of its own: there is "
                    "no row to delete. Remove the key to drop such messages.",
                )


def _build(
    pipeline: Pipeline, declared: CollectionDeclaration, connections: Connections
) -> "CollectionWriter":
    from tidemark.writers.collection.writer import CollectionWriter

    connection, source = connections.cassandra[declared.connection], pipeline.source.kafka
    return CollectionWriter(
        pipeline.name, declared, connection, source.format, topics=frozenset(source.topics)
    )


def _removal(
    pipeline: Pipeline, declared: CollectionDeclaration, connections: Connections, topics: Collection[str]
) -> "CollectionRemoval":
    from tidemark.writers.collection.removal import CollectionRemoval

    return CollectionRemoval(pipeline.name, declared, connections.cassandra[declared.connection])


COLLECTION = WriterKind("collection", CollectionDeclaration, _build, _removal)
