"""One synchronisation, step by step: validate, wait, compare, guard, send, verify, report.

Every step can be repeated, by another process too: what a step has found is in the run's files, and what was
sent is in the topic. The comparison itself is the work of an engine, which is not known here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO, cast

from tidemark.client.collection.opened import OpenedCollection
from tidemark.client.collection.settings import CollectionSettings
from tidemark.clock import Clock, wall_clock
from tidemark.connections import Connections
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.faults import at_once
from tidemark.log.state.control import LogControl
from tidemark.oplog.sync import barrier
from tidemark.oplog.sync.barrier import KnownOperations
from tidemark.oplog.sync.current_objects import read_current
from tidemark.oplog.sync.dump.reader import opened_dump, parse_start
from tidemark.oplog.sync.errors import CorrectionsMissing, NoOplogCollection
from tidemark.oplog.sync.guard import DeleteLimit, refuse_too_many
from tidemark.oplog.sync.kafka_operations import (
    KafkaOperations,
    TopicState,
    partition_of,
    read_topic,
    refuse_changed,
)
from tidemark.oplog.sync.report import corrections_of, deletes_of, report_document
from tidemark.oplog.sync.run_files import DiffSummary, DumpSummary, SentSummary, SyncFiles
from tidemark.oplog.sync.sender import send_corrections
from tidemark.oplog.sync.sending import AT_ONCE, Sending, SendingRules
from tidemark.oplog.sync.verify import Verified, verify
from tidemark.pipeline.model import Pipeline
from tidemark.writers.collection.kind import CollectionDeclaration

WHO = "tidemark sync"
ENVELOPE = "oplog"


def oplog_collection(pipeline: Pipeline) -> CollectionDeclaration | None:
    """The collection of a pipeline's objects; None where there is none."""
    for writer in pipeline.writers:
        if writer.kind == "collection":
            declared = cast("CollectionDeclaration", writer)
            if declared.envelope == ENVELOPE:
                return declared
    return None


@dataclass(frozen=True)
class Synchronisation:
    """The synchronisations of one pipeline.

    Attributes:
        declared: The pipeline.
        connections: Its connections.
        control: Its log in the control plane.
        settings: Its collection.
        clock: For reports.
    """

    declared: Pipeline
    connections: Connections
    control: LogControl
    settings: CollectionSettings
    clock: Clock = wall_clock

    @classmethod
    def of(cls, declared: Pipeline, connections: Connections, control: LogControl) -> "Synchronisation":
        """For a pipeline. Raises ``NoOplogCollection``."""
        collection = oplog_collection(declared)
        if collection is None:
            raise NoOplogCollection(declared.name)
        cassandra = connections.cassandra[collection.connection]
        settings = CollectionSettings(declared, collection, cassandra, connections.control)
        return cls(declared, connections, control, settings)

    @property
    def pipeline(self) -> str:
        """The pipeline's name."""
        return self.declared.name

    @property
    def writer(self) -> str:
        """The name of the collection."""
        return self.settings.declared.name

    @cached_property
    def files(self) -> SyncFiles:
        """The files of its runs."""
        return SyncFiles(self.pipeline, self.declared.log.path)

    @cached_property
    def collection(self) -> OpenedCollection:
        """The collection's times."""
        return self.settings.open(WHO)

    # Before anything is compared

    def validate(
        self,
        dump: str,
        start: str,
        show: Callable[[str], object],
        *,
        force: bool = False,
        stdin: BinaryIO | None = None,
    ) -> DumpSummary:
        """Read a dump, and keep its objects for the comparison.

        Args:
            dump: A path or a URI; ``-`` for ``stdin``.
            start: When it began: a date, or ``newest``.
            show: Gets a text about every bad line.
            force: Take an empty dump too.
            stdin: What ``-`` means.
        """
        begun = parse_start(start)
        self.files.remove_old(self.clock())
        with opened_dump(dump, show, stdin) as reader:
            return self.files.keep_dump(reader, dump, begun, may_be_empty=force)

    def read_topic(self, *, records: bool = False) -> TopicState:
        """See ``kafka_operations.read_topic``."""
        return read_topic(self.declared, self.connections.kafka, self.control, records=records)

    def reached(self, topic: TopicState, ends: Mapping[int, int] | None = None) -> KnownOperations:
        """What the collection has now, which is everything before these ends, or the topic's.

        Raises ``CollectionBehind`` where it has not.
        """
        known = barrier.newest_known(self.collection, self.control, topic)
        barrier.require_reached(self.collection, known, topic.ends if ends is None else ends)
        return known

    def known_at(self, topic: TopicState, t: int) -> KnownOperations:
        """What the collection had at a time that ``reached`` has given before."""
        return barrier.known_at(self.control, topic, t)

    # After the comparison

    def guard(self, diff: DiffSummary, limit: DeleteLimit, *, force: bool = False) -> None:
        """Raise ``TooManyDeletes`` where more objects would be deleted than may be."""
        if not force:
            refuse_too_many(self.pipeline, deletes_of(diff), diff.live, limit)

    def send(self, diff: DiffSummary, signed: AuditEntry | None = None) -> SentSummary:
        """Send the corrections of a comparison that are not sent yet. ``signed`` is kept for ever."""
        self._refuse_changed(diff, records=True)
        if signed is not None:
            self.control.keep_decision(signed)
        topic, partitions = diff.topic, len(diff.starts)
        rules = SendingRules(self.pipeline, topic, diff.topic_id, diff.key, diff.starts, at_once(AT_ONCE))
        corrections = (
            (one, partition_of(one.type, one.id, partitions)) for one in self.files.corrections(diff)
        )
        sending = Sending(rules, self.files.stored(diff), corrections)
        kafka, isolation = self.connections.kafka, self.declared.source.kafka.isolation
        with (
            KafkaOperations(self.pipeline, topic, partitions, kafka, isolation) as operations,
            self.files.settling(diff) as settled,
        ):
            send_corrections(sending, operations, settled.add)
        self._refuse_changed(diff)
        sent = SentSummary(
            settled.sent, settled.overtaken, sending.resent, dict(sending.next_offsets), settled.path
        )
        self.files.keep_sent(diff, sent)
        return sent

    def verify(self, diff: DiffSummary) -> Verified:
        """Look at the corrected objects once more.

        Raises ``CollectionBehind`` before their corrections are delivered, ``CorrectionsMissing`` where an
        object is not as it was corrected.
        """
        sent = self.files.sent(diff)
        known = self.reached(self._refuse_changed(diff), sent.ends)
        found = Verified()
        for some in self.files.settled(sent):
            objects = [(one.operation.type, one.operation.id) for one in some]
            found += verify(some, read_current(self.collection, known.t, objects, WHO))
        if found.missing:
            raise CorrectionsMissing(self.pipeline, found.objects, found.missing)
        return found

    def report(self, key: str, t: int, verified: Verified | None) -> dict[str, Any]:
        """Keep the report of a run for ever; its other files are removed."""
        document = self.files.report(key, t)
        if document is None:
            dump, diff = self.files.dump(key), self.files.diff(key, t)
            sent = self.files.sent(diff) if corrections_of(diff) else None
            document = report_document(self.pipeline, dump, diff, sent, verified)
            self.files.keep_report(key, t, document)
        self.files.remove(key)
        return document

    def _refuse_changed(self, diff: DiffSummary, *, records: bool = False) -> TopicState:
        now = self.read_topic(records=records)
        refuse_changed(self.pipeline, now, diff.topic_id, diff.starts)
        return now
