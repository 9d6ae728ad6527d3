"""The ``journal`` writer: applies actions to the tables that kafka-journal's clients read.

A part is one Kafka partition, or the share of a large partition that has some of its entities, so one task
writes all messages of an entity in order. Messages at or below ``pointer2`` are in the tables already and are
dropped. A message that cannot be applied stops the writer; it is never skipped.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32
from zoneinfo import ZoneInfo

import pyarrow as pa

from tidemark.cassandra.bulk.writer import IN_FLIGHT, IN_FLIGHT_BESIDE
from tidemark.cassandra.session import connect, server_time
from tidemark.connections import CassandraConnection
from tidemark.delivery.state.earlier_pipelines import Earlier, LeftOver
from tidemark.delivery.writer import BadMessage, Check, Later, Part, Past, Writer, Writing, Written, admit
from tidemark.faults import at_once
from tidemark.journal.action import Action, Append, Delete, Mark, Purge
from tidemark.journal.codec.record import read_action, read_key
from tidemark.journal.effect import Effect, Message, Row
from tidemark.journal.errors import JournalError, Undecodable
from tidemark.journal.fold import fold
from tidemark.journal.head import Head
from tidemark.journal_tables.cells import is_too_long
from tidemark.journal_tables.heads import PartitionHeads, milliseconds
from tidemark.journal_tables.schema.create import create_journal
from tidemark.journal_tables.schema.found import read_keyspace
from tidemark.journal_tables.schema.layout import DATA, name_of
from tidemark.journal_tables.statements import JournalTables, Pointer, are_there
from tidemark.log.model.binding import Binding, TopicPartition
from tidemark.log.model.manifest import LogFile
from tidemark.pipeline.model import JournalDeclaration
from tidemark.writers.garbage_collection import seldom_collecting
from tidemark.writers.journal.errors import OffsetsBegunAnew, TablesChanged
from tidemark.writers.journal.partition import ROWS_TOGETHER, JournalPart
from tidemark.writers.journal.redelivery import REBUILD, apply_after_all
from tidemark.writers.shares import chunks, count_shares, of_share, parts_by_partition

MESSAGES_AT_ONCE = at_once(8_192)
BYTES_AT_ONCE = 4 * 2**20
"""Limits of one chunk: the messages, and their bytes, that are read before they are folded. Large enough to
read many heads at once."""
MESSAGES_A_PART = 250_000
"""The messages of one part. The entities of a partition with more are shared among several parts."""
NO_POINTER = -1
NOT_THERE = Pointer(NO_POINTER, 0)


@dataclass(frozen=True)
class JournalWriter(Writer):
    """Writes one journal keyspace."""

    pipeline: str
    declared: JournalDeclaration
    connection: CassandraConnection
    zone: str
    topics: frozenset[str] = field(default=frozenset(), kw_only=True)
    """The topics that the pipeline's file names."""
    left_out: frozenset[str] = field(default=frozenset(), kw_only=True)
    """Re-created topics of the current binding: the tables hold the earlier topics of the same names."""
    in_flight: int = field(default=IN_FLIGHT, kw_only=True)
    """How many batches of rows wait for their answer at the same time."""

    @property
    def name(self) -> str:
        """See ``Writer.name``."""
        return self.declared.name

    @property
    def shape(self) -> Mapping[str, Any]:
        """See ``Writer.shape``."""
        keys = {"kind", "keyspace", "tables", "segment_size", "namespaces"}
        return {**self.declared.model_dump(mode="json", include=keys), "timezone": self.zone}

    @property
    def compared_after_delivery(self) -> int:
        """See ``Writer.compared_after_delivery``: entities, which are not compared by a ``verifier``."""
        return self.declared.reconcile

    @property
    def compared_by(self) -> str:
        """See ``Writer.compared_by``."""
        return "tidemark.verification.renditions.journal:compare_journals"

    def beside(self) -> "JournalWriter":
        """See ``Writer.beside``."""
        return replace(self, in_flight=IN_FLIGHT_BESIDE)

    def prepare(self) -> None:
        """Creates or migrates the keyspace and its tables."""
        create_journal(connect(self.connection), self.pipeline, self.declared)

    def examine(self, binding: Binding, past: Past) -> None:
        """Raises TablesChanged where the pointers are not where this writer left them.

        Before the first delivery, pointers may be anywhere below the binding's end, because tables can be
        taken over. After a rewind they are ahead, at most up to the highest position there ever was. A
        pointer inside the binding is left by a crash before the commit, and then has the write time of a
        message of this binding. Every other pointer was written by another replicator. It is accepted only
        where the tables were taken over since, or before anything was bound. Raises OffsetsBegunAnew where a
        partition was truncated.
        """
        slices = [s for s in binding.slices if self._admits(s.topic)]
        for s in slices:
            before = past.offsets.get((s.topic, s.partition), NO_POINTER)
            if s.lower <= before:
                raise OffsetsBegunAnew(self.pipeline, self.name, s.topic, s.partition, s.lower, before)
        pointers = self._tables.read_timed_pointers([(s.topic, s.partition) for s in slices])
        is_new = past.reached < 0
        is_first = is_new or binding.base == 0
        reached = {} if is_new else {**past.offsets, **binding.offsets_at(past.position)}
        for s in slices:
            place = s.topic, s.partition
            found, written = pointers.get(place, NOT_THERE)
            least, taken_over = reached.get(place, NO_POINTER), past.theirs.get(place, NO_POINTER)
            is_ahead = found >= s.upper and binding.base > past.reached
            is_foreign = (
                s.lower <= found < s.upper
                and written != binding.write_time(binding.id_of(*place, found))
                and (written >= binding.t or not is_first)
            )
            if found < least or (found > taken_over and (is_ahead or is_foreign)):
                most = s.upper - 1 if is_ahead else s.lower - 1 if is_foreign else None
                raise TablesChanged(
                    self.pipeline, self.name, self.declared.keyspace, *place, found, least, most
                )

    def refuses_compacted(self, offsets: Mapping[TopicPartition, int], is_begun: bool) -> str | None:
        """Refused where compaction removed messages that the tables lack.

        Empty tables are rebuilt from a compacted log, and tables past all of it drop its messages.
        """
        if is_begun or not self._has_tables:
            return None
        wanted = {place: offset for place, offset in offsets.items() if self._admits(place[0])}
        pointers = self._tables.read_pointers(list(wanted))
        if not pointers and not self._tables.has_heads():
            return None
        behind = [place for place, offset in wanted.items() if pointers.get(place, NO_POINTER) < offset]
        if not behind:
            return None
        (topic, partition), keyspace = behind[0], self.declared.keyspace
        return (
            f"keyspace {keyspace} is neither empty nor past it: the pointer of {topic}/{partition} should be "
            f"at {wanted[topic, partition]} at least"
        )

    def refuses_rendition(self) -> str | None:
        """See ``Writer.refuses_rendition``: tables with pointers or heads are those of another journal."""
        if not self._has_tables:
            return None
        is_used = self._tables.has_heads() or self._tables.has_pointers()
        return f"keyspace {self.declared.keyspace} is not empty" if is_used else None

    def cut(self, binding: Binding, files: Sequence[LogFile]) -> list[Part]:
        """One part per Kafka partition, several for a large one. Every file holds one partition."""
        return parts_by_partition(binding, files, MESSAGES_A_PART)

    def write(self, part: Part, writing: Writing) -> Written:
        """See ``Writer.write``."""
        tables, is_ours = self._tables, _share(part)
        total, at_work = Written(details={"entities": 0}), dict[TopicPartition, JournalPart]()
        with seldom_collecting(), tables.bulk(writing.lease.check, self.in_flight) as bulk:
            own = of_share(writing.batches, part, MESSAGES_A_PART, _hashes)
            for chunk in chunks(own, MESSAGES_AT_ONCE, BYTES_AT_ONCE):
                admitted = admit(chunk, re.compile(self.declared.namespaces))
                total += Written(filtered=chunk.num_rows - admitted.num_rows)
                if admitted.num_rows == 0:
                    continue
                topic, partition = place = admitted["topic"][0].as_py(), admitted["partition"][0].as_py()
                if place not in at_work:
                    pointer = tables.read_pointers([place]).get(place, NO_POINTER)
                    heads = PartitionHeads(tables, topic, partition, is_ours)
                    size, zone = self.declared.segment_size, ZoneInfo(self.zone)
                    at_work[place] = JournalPart(
                        tables, bulk, heads, place, pointer, size, zone, _created(part, topic)
                    )
                bad = at_work[place].take(admitted)
                if bad:
                    at_work[place].finish()
                    raise BadMessage(
                        self.pipeline, self.name, topic, partition, bad.offset, bad.id, bad.problem
                    )
            for one in at_work.values():
                total += one.finish()
        return total

    def finish(self, part: Part, writing: Writing) -> None:
        """Does nothing: readers follow the pointers, which ``settle`` moves."""

    def settle(self, binding: Binding, position: int, lease: Check) -> None:
        """Moves the pointers: from then on, readers take everything up to them from Cassandra."""
        pointers = {
            place: (offset, binding.write_time(binding.id_of(*place, offset)))
            for place, offset in binding.offsets_at(position).items()
            if self._admits(place[0])
        }
        lease.check()
        self._tables.write_pointers(pointers, binding.t)

    def is_reachable(self) -> None:
        """Asks Cassandra for the time, then tries a read and a write to every table, as a delivery does.

        A single node can answer the first, reads and writes need the consistency level. The writes are
        tombstones of rows that cannot exist. Missing tables are not created.
        """
        session = connect(self.connection)
        server_time(session)
        if are_there(session, self.declared):
            self._tables.read_pointers([(self.pipeline, 0)])
            self._tables.try_writing()

    def refuses_acknowledgement(self, message: Mapping[str, Any]) -> str | None:
        """A delete or purge that may be partly applied cannot be undone: it can only be retried.

        One that the fold refuses was never applied, so it can be acknowledged.
        """
        action = _action(message)
        if isinstance(action, Delete | Purge):
            if self._effect(message, action, self._head(message, action)) is None:
                return None
            return "a delete or a purge may be applied half by now; it can only be tried again."
        if isinstance(action, Append):
            head = self._head(message, action)
            if head and head.partition == message["partition"] and head.offset >= message["offset"]:
                return "it is applied already. Resume: nothing of it is left to do."
            if head is None and self._has_followers(message, action):
                return (
                    "it begins its entity, and later appends were written with it, under an id that would be "
                    "another one without it. Mend the target and resume."
                )
        return None

    def discard(self, message: Mapping[str, Any]) -> None:
        """Deletes the rows that an attempt may have written for an append."""
        action = _action(message)
        if isinstance(action, Append):
            rows = self._rows(message, action)
            segments = {row.segment for row in rows}
            others = {
                (row.segment, row.seq_nr, milliseconds(row.timestamp))
                for row in self._tables.read_rows(message["topic"], action.key, segments)
                if (row.partition, row.offset) != (message["partition"], message["offset"])
            }
            # Rows that are not there are deleted too, because a write that timed out may still arrive. A row
            # of an earlier message at the same place stays.
            self._tables.remove_rows(
                row for row in rows if (row.segment, row.seq_nr, row.timestamp) not in others
            )

    @property
    def redelivers_in_place(self) -> bool:
        """See ``Writer.redelivers_in_place``. The tables keep the order of each entity's messages only."""
        return True

    def refuses_redelivery(self, message: Mapping[str, Any], later: Later) -> str | None:
        """Refused where the entity has later messages: an older one must not be applied after them."""
        topic = message["topic"]
        if not self._admits(topic):
            return f"its namespace {topic} is not one of this writer's ({self.declared.namespaces})."
        try:
            effect = self._applied(message)
        except BadMessage as bad:
            return f"it still cannot be understood: {bad.problem.rstrip('.')}."
        if effect is None:
            return "it changes no entity: there is nothing to write."
        if not later.is_whole:
            return f"compaction may have removed what came after it in its entity. {REBUILD}"
        follower = later.first_of(message["key"], lambda one: one["topic"] == topic)
        if follower is not None:
            return f"id {follower} of the same entity was applied after it. {REBUILD}"
        return None

    def redeliver(self, message: Mapping[str, Any], mark: Mapping[str, Any], lease: Check) -> None:
        """See ``Writer.redeliver``. The pointers are already past the message."""
        if effect := self._applied(message):
            apply_after_all(self._tables, effect, lease)

    def _applied(self, message: Mapping[str, Any]) -> Effect | None:
        """The effect of a message on its entity; None where it changes none.

        Raises BadMessage for a bad one.
        """
        try:
            action = _read(message)
            if action is None or isinstance(action, Mark):
                return None
            if is_too_long(message["topic"], action.key):
                raise JournalError("its key is longer than Cassandra takes")
            return self._fold(message, action, self._head(message, action))
        except JournalError as error:
            where = (message["topic"], message["partition"], message["offset"], message["id"])
            raise BadMessage(self.pipeline, self.name, *where, str(error)) from error

    def _has_followers(self, message: Mapping[str, Any], action: Append) -> bool:
        """Whether rows of later appends belong to the incarnation that this append begins."""
        rows = self._rows(message, action)
        if not rows:
            return False
        # The most segments that rows of one batch can span.
        reach = (ROWS_TOGETHER + MESSAGES_AT_ONCE) // self.declared.segment_size + 1
        segments = range(rows[0].segment, rows[-1].segment + reach + 1)
        return any(
            row.offset > message["offset"] and row.meta_record_id == rows[0].meta_record_id
            for row in self._tables.read_rows(message["topic"], action.key, segments)
        )

    def _rows(self, message: Mapping[str, Any], action: Append) -> Sequence[Row]:
        """The rows of an append; empty where it cannot be applied."""
        head = self._head(message, action)
        if head and head.partition != message["partition"]:
            head = None  # the attempt that wrote rows of it had found no head
        effect = self._effect(message, action, head)
        return effect.rows if effect else ()

    def _effect(self, message: Mapping[str, Any], action: Action, head: Head | None) -> Effect | None:
        """The effect of a message on this head; None where it cannot be applied."""
        try:
            return self._fold(message, action, head)
        except JournalError:
            return None

    def _fold(self, message: Mapping[str, Any], action: Action, head: Head | None) -> Effect:
        """The effect of a message on this head. Raises JournalError where it cannot be applied."""
        place = (message["partition"], message["offset"], message["write_time"], message["t"])
        return fold(
            message["topic"],
            action.key,
            head,
            [Message(message["id"], *place, action)],
            segment_size=self.declared.segment_size,
            zone=ZoneInfo(self.zone),
        )

    def _head(self, message: Mapping[str, Any], action: Action) -> Head | None:
        heads = PartitionHeads(self._tables, message["topic"], message["partition"])
        heads.load([action.key])
        return heads[action.key]

    def leaving_out(self, topics: frozenset[str]) -> "JournalWriter":
        """The writer without these topics: heads and pointers compare offsets, and a re-created topic's
        offsets begin anew."""
        return replace(self, left_out=topics)

    def refuses_recreated(self, places: Collection[TopicPartition]) -> str | None:
        """Refused unless the keyspace is empty: it may hold the old topic and drop the new one's messages."""
        if self._has_tables and (self._tables.read_pointers(sorted(places)) or self._tables.has_heads()):
            return f"keyspace {self.declared.keyspace} is not empty: give the writer one of its own"
        return None

    def refuses_left_over(self, earlier: Earlier) -> LeftOver | None:
        """Refused where the pointers are those of an earlier topic of the same name."""
        places = sorted(place for place in earlier.source if self.admits(place[0]))
        if not earlier.forgettings or not places or not self._can_be_read:
            return None
        pointers, made = self._tables.read_pointers(places), self._tables.pointers_made(places)
        for (topic, partition), offset in sorted(pointers.items()):
            if earlier.had_another((topic, partition), made.get((topic, partition), 0)):
                problem = (
                    f"keyspace {self.declared.keyspace} has what an earlier pipeline of this name, which was "
                    f"forgotten, wrote of another topic {topic}: that was deleted and made again since. The "
                    f"pointer of {topic}/{partition} is at offset {offset}, so what the new one has up to "
                    "there would be taken for written"
                )
                return LeftOver(problem, "Give the writer a keyspace of its own")
        return None

    @property
    def named_topics(self) -> frozenset[str]:
        """See ``Writer.named_topics``."""
        return self.topics

    def admits(self, topic: str) -> bool:
        """See ``Writer.admits``."""
        return re.search(self.declared.namespaces, topic) is not None

    def _admits(self, topic: str) -> bool:
        return topic not in self.left_out and self.admits(topic)

    @property
    def _has_tables(self) -> bool:
        # Queries Cassandra, because the driver's copy of the schema may be seconds old.
        found = read_keyspace(connect(self.connection), self.declared).tables
        return any(name_of(self.declared, table) in found for table in ("metajournal", "pointer2"))

    @property
    def _can_be_read(self) -> bool:
        found = read_keyspace(connect(self.connection), self.declared).tables
        return all(name_of(self.declared, table) in found for table in DATA)

    @property
    def _tables(self) -> JournalTables:
        return JournalTables.of(connect(self.connection), self.declared)


def _read(message: Mapping[str, Any]) -> Action | None:
    """The action of a message; None where it is none. Raises Undecodable."""
    headers = [(header["name"], header["value"]) for header in message["headers"] or ()]
    times = (message["timestamp"], message["timestamp_type"])
    return read_action(message["key"], message["value"], *times, headers)


def _action(message: Mapping[str, Any]) -> Action | None:
    """The action of a message; None too where it cannot be decoded or its key is too long for the tables."""
    try:
        action = _read(message)
    except Undecodable:
        return None
    return None if action and is_too_long(message["topic"], action.key) else action


def _created(part: Part, topic: str) -> int | None:
    """The creation time (ms) of heads that begin in a part, for the check that entities do not begin twice.

    None where the topic has no other partition in the binding, or the part is not whole.
    """
    partitions = sum(1 for s in part.binding.slices if s.topic == topic)
    return part.binding.t // 1000 if part.is_whole and partitions > 1 else None


def _share(part: Part) -> Callable[[str], bool]:
    """A predicate: whether an entity belongs to a part."""
    if part.number is None:
        return lambda key: True
    number, shares = part.number, count_shares(part, MESSAGES_A_PART)
    return lambda key: crc32(key.encode()) % shares == number


def _hashes(batch: pa.RecordBatch) -> list[int]:
    """The hash of every message's entity. Messages without a key belong to the first part."""
    return [0 if key is None else crc32(read_key(key).encode()) for key in batch["key"].to_pylist()]
