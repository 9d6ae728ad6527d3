"""The ``collection`` writer: one row a message, by key and time, that readers read as of any time.

A part is one Kafka partition, or a share of a large one. Every message has a row of its own, whose cells
depend on the message alone, so writing it again changes nothing. A row is visible to readers once its binding
is finished, and never changes after that. A message of which no row can be made stops the writer, and so does
one whose key was in another partition of its topic.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any
from zlib import crc32

import pyarrow as pa

from tidemark.cassandra.bulk.writer import IN_FLIGHT, IN_FLIGHT_BESIDE
from tidemark.collection.model.envelopes.envelope import EnvelopeName
from tidemark.collection.model.envelopes.registry import ENVELOPES
from tidemark.collection.model.row_digests import digests_of, no_digests
from tidemark.collection.model.rows import BadRow, RowBatch, RowRules, rows_of
from tidemark.collection.tables.layout import CollectionPlace
from tidemark.connections import CassandraConnection
from tidemark.delivery.writer import (
    BadMessage,
    Check,
    Later,
    Part,
    TargetIdentity,
    TargetReplaced,
    TimedOutput,
    Writer,
    Writing,
    Written,
)
from tidemark.faults import at_once
from tidemark.log.files.parquet import LOG_SCHEMA
from tidemark.log.model.binding import Binding, TopicPartition
from tidemark.log.model.manifest import LogFile
from tidemark.pipeline.kinds import FORMATS
from tidemark.writers.collection.compacted import policies_of, refusal_of
from tidemark.writers.collection.corrections import CorrectionsOfPart
from tidemark.writers.collection.errors import TablesNotEmpty
from tidemark.writers.collection.key_places import KeyPlaces
from tidemark.writers.collection.kind import CollectionDeclaration
from tidemark.writers.collection.places import place_of
from tidemark.writers.collection.target import CollectionTarget
from tidemark.writers.garbage_collection import seldom_collecting
from tidemark.writers.shares import chunks, of_share, parts_by_partition

MESSAGES_AT_ONCE, BYTES_AT_ONCE = at_once(20_000), 16 * 2**20
"""The messages, and their bytes, that are made into rows together: their keys are looked up with few
statements."""
MESSAGES_A_PART = 250_000
"""The messages of one part."""
BINDINGS_COMPARED = 1
"""The bindings that are compared with the log after a delivery."""


@dataclass(frozen=True)
class CollectionWriter(Writer):
    """Writes one collection.

    Attributes:
        pipeline: The pipeline's name.
        declared: The writer's declaration.
        connection: Cassandra.
        source_format: The source format, which decides how a value is read.
        topics: The topics that the pipeline's file names.
        tables: The identity of the tables that it is bound to; None before.
        is_trial: Whether it only computes digests.
        in_flight: How many batches of rows wait for their answer at the same time.
        first_ids: The first ids of topics that were created again under their names, of those of the binding.
    """

    pipeline: str
    declared: CollectionDeclaration
    connection: CassandraConnection
    source_format: str = "json"
    topics: frozenset[str] = field(default=frozenset(), kw_only=True)
    tables: str | None = field(default=None, kw_only=True)
    is_trial: bool = field(default=False, kw_only=True)
    in_flight: int = field(default=IN_FLIGHT, kw_only=True)
    first_ids: Mapping[str, int] = field(default_factory=dict, kw_only=True)

    def __getstate__(self) -> dict[str, Any]:
        # Without what was compiled: functions of other packages may not be pickled.
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def name(self) -> str:
        """See ``Writer.name``."""
        return self.declared.name

    @property
    def shape(self) -> Mapping[str, Any]:
        """See ``Writer.shape``."""
        keys = {"kind", "keyspace", "envelope", "key", "key_format", "columns", "transforms", "shards"}
        declared = self.declared.model_dump(mode="json", include={*keys, "namespaces"})
        reads = {"source_format": self.source_format} if self._format.shapes_output else {}
        return {**declared, "table": self.declared.table_name, **reads}

    def timed_output(self) -> TimedOutput:
        """See ``Writer.timed_output``."""
        return TimedOutput(self.declared.shards)

    @property
    def verifier(self) -> str:
        """See ``Writer.verifier``."""
        return "tidemark.verification.outputs.collection:verify_collection"

    @property
    def compared_by(self) -> str:
        """See ``Writer.compared_by``."""
        return "tidemark.verification.renditions.collection:compare_collections"

    @property
    def compared_after_delivery(self) -> int:
        """See ``Writer.compared_after_delivery``: the newest bindings."""
        return BINDINGS_COMPARED

    def trial(self) -> "CollectionWriter":
        """See ``Writer.trial``. Corrections depend on rows of earlier messages, which are read."""
        return replace(self, is_trial=True)

    def beside(self) -> "CollectionWriter":
        """See ``Writer.beside``."""
        return replace(self, in_flight=IN_FLIGHT_BESIDE)

    def since_recreation(self, first_ids: Mapping[str, int]) -> "CollectionWriter | None":
        """See ``Writer.since_recreation``: partitions and offsets of a key are compared within a topic."""
        if self.declared.envelope is EnvelopeName.APPEND:
            return None
        return replace(self, first_ids=dict(first_ids))

    def create_target(self) -> None:
        """Creates both tables, and refuses those that have rows: of another collection, or of this one."""
        self.target.create()
        if not self.target.is_empty():
            raise TablesNotEmpty(self.pipeline, self.name, str(self.place))

    def identify(self) -> TargetIdentity:
        """See ``Writer.identify``: the ids of both tables. Raises CollectionMissing."""
        return self.target.identify()

    def bound_to(self, identity: TargetIdentity) -> "CollectionWriter":
        """See ``Writer.bound_to``."""
        return replace(self, tables=identity.id)

    def reached(self) -> Mapping[int, int]:
        """See ``Writer.reached``. Rows are not skipped by their ids: only whether there are any matters."""
        return {0: -1 if self.target.is_empty() else 0}

    def prepare(self) -> None:
        """Refuses tables with other columns. Those that are missing were refused before."""
        self.target.create()

    def cut(self, binding: Binding, files: Sequence[LogFile]) -> list[Part]:
        """One part per Kafka partition, several for a large one."""
        return parts_by_partition(binding, files, MESSAGES_A_PART)

    def write(self, part: Part, writing: Writing) -> Written:
        """See ``Writer.write``."""
        if self.is_trial:
            return self._compute(part, writing)
        self._refuse_other_tables()
        has_places = self.declared.envelope is not EnvelopeName.APPEND
        places = KeyPlaces(self.target, part, self.first_ids) if has_places else None
        corrections = self._corrections(part)
        total, bad = self._nothing, None
        with seldom_collecting(), self.target.writing(writing.lease.check, self.in_flight) as rows:
            for made in self._made(part, writing):
                bad = made.bad
                if places and (split := places.first_split(made.rows)):
                    bad = split  # lower than what could not be processed: that has no row
                    made = replace(made, rows=[row for row in made.rows if row.message_id < split.id])
                if corrections:
                    made = corrections.without_void(made)
                rows.add(made.rows)
                if bad:
                    break
                total += self._counted(made)
        if bad:
            raise self._bad(bad)
        return replace(total, begun=places.begun if places else ())

    def finish(self, part: Part, writing: Writing) -> None:
        """Does nothing: readers see the rows once the frontier passes their binding."""

    def settle(self, binding: Binding, position: int, lease: Check) -> None:
        """Raises TargetReplaced where a table was created again meanwhile."""
        self._refuse_other_tables()

    def discard(self, message: Mapping[str, Any]) -> None:
        """Deletes exactly the row of the message, if one can be made of it."""
        batch = pa.RecordBatch.from_pylist([dict(message)], schema=LOG_SCHEMA)
        if made := rows_of(batch, self.rules).rows:
            self.target.discard(made)

    def refuses_redelivery(self, message: Mapping[str, Any], later: Later) -> str | None:
        """Always refused: readers may have read its time without it, and its row was deleted for good."""
        return (
            f"readers may have read the time {message['t']} without it, and what they have read never "
            "changes. Send the message to Kafka again, corrected where necessary: it gets a time of its own."
        )

    def is_reachable(self) -> None:
        """See ``Writer.is_reachable``. Missing tables are not created."""
        self.target.identify()
        self.target.try_using()

    @property
    def whole_after(self) -> frozenset[str]:
        """See ``Writer.whole_after``."""
        return policies_of(self.declared)

    def refuses_compacted(self, offsets: Mapping[TopicPartition, int], is_begun: bool) -> str | None:
        """Refused where the last message of each key does not give the same state as all of them."""
        return refusal_of(self.declared)

    @property
    def named_topics(self) -> frozenset[str]:
        """See ``Writer.named_topics``."""
        return self.topics

    def admits(self, topic: str) -> bool:
        """See ``Writer.admits``."""
        return re.search(self.declared.namespaces, topic) is not None

    @cached_property
    def rules(self) -> RowRules:
        """The rules by which messages make rows."""
        declared, kind = self.declared, self._format
        return RowRules(
            declared.schema_of_rows,
            declared.envelope,
            declared.key_format,
            declared.transforms,
            declared.namespaces,
            kind.read_exactly or kind.read,
        )

    @property
    def place(self) -> CollectionPlace:
        """The tables."""
        return place_of(self.pipeline, self.declared)

    @property
    def target(self) -> CollectionTarget:
        """The tables, with the connection."""
        return CollectionTarget(self.connection, self.place)

    @property
    def _format(self) -> Any:
        return FORMATS.find(self.source_format)

    @property
    def _nothing(self) -> Written:
        return Written(details={"rows": 0, "deletes": 0}, digests=no_digests(self.declared.shards))

    def _compute(self, part: Part, writing: Writing) -> Written:
        """The digests of a part. Writes nothing. What another partition has is not looked at: a binding is
        computed again only after it was finished once."""
        total, corrections = self._nothing, self._corrections(part)
        with seldom_collecting():
            for made in self._made(part, writing):
                if made.bad:
                    raise self._bad(made.bad)
                total += self._counted(corrections.without_void(made) if corrections else made)
        return total

    def _corrections(self, part: Part) -> CorrectionsOfPart | None:
        """The corrections of a part; None for an envelope without any."""
        if not ENVELOPES[self.declared.envelope].has_corrections:
            return None
        place = (self.pipeline, self.name), self.target, part, self.first_ids
        return CorrectionsOfPart(*place, is_trial=self.is_trial)

    def _made(self, part: Part, writing: Writing) -> Iterator[RowBatch]:
        """What the messages of a part make, chunk by chunk."""
        own = of_share(writing.batches, part, MESSAGES_A_PART, _hashes)
        for chunk in chunks(own, MESSAGES_AT_ONCE, BYTES_AT_ONCE):
            for batch in chunk.combine_chunks().to_batches():
                yield rows_of(batch, self.rules)

    def _counted(self, made: RowBatch) -> Written:
        deletes = sum(row.gone for row in made.rows)
        details = {"rows": made.written - deletes, "deletes": deletes}
        digests = digests_of(made.rows, self.declared.shards)
        return Written(made.written, made.filtered, made.ignored, details, digests=digests)

    def _bad(self, bad: BadRow) -> BadMessage:
        return BadMessage(self.pipeline, self.name, bad.topic, bad.partition, bad.offset, bad.id, bad.problem)

    def _refuse_other_tables(self) -> None:
        if self.tables is None:
            return
        present = self.target.identify()
        if present.id != self.tables:
            raise TargetReplaced(
                self.pipeline,
                self.name,
                present.what,
                self.tables,
                present.id,
                f"it was dropped and created again while it was written to (its id was {self.tables} and is "
                f"{present.id}), so a part of what was delivered is not in it",
            )


def _hashes(batch: pa.RecordBatch) -> list[int]:
    """The hash of every message's key; of messages without one, their ids."""
    keys, ids = batch["key"].to_pylist(), batch["id"].to_pylist()
    return [id_ if key is None else crc32(key) for key, id_ in zip(keys, ids, strict=True)]
