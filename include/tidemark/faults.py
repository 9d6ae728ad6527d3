"""Fault points: between any two durable writes there is a point at which a test can crash the process.

A process that reaches the point named by ``TIDEMARK_FAULT`` kills itself as by ``kill -9``: no ``finally``
runs and nothing is flushed. With ``:pause`` appended to the name it is suspended instead, so that another
process can take over before it continues. Without the variable, which only tests set, nothing happens.

``TIDEMARK_AT_ONCE`` limits the size of batches, so that a crash can fall between two batches of a small
amount of work. Only tests set it.
"""

import os
import signal
from enum import StrEnum

VARIABLE = "TIDEMARK_FAULT"
PAUSE = ":pause"
AT_ONCE = "TIDEMARK_AT_ONCE"


class FaultPoint(StrEnum):
    """Each point is named after the write that has just become durable or is about to."""

    TAKEN_OVER = "take_over.recorded"
    TAKE_OVER_DATED = "take_over.dated"
    TAKE_OVER_OPENED = "take_over.opened"
    HAND_BACK_RECORDED = "hand_back.recorded"
    HAND_BACK_COMMITTED = "hand_back.committed"
    BIND_DECIDED = "bind.decided"
    BIND_COMMITTED = "bind.committed"
    CAPTURE_FILE_STAGED = "capture.file_staged"
    CAPTURE_FILE_NAMED = "capture.file_named"
    CAPTURE_FILES_WRITTEN = "capture.files_written"
    CAPTURE_RECORDED = "capture.recorded"
    AUDIT_RECORDED = "audit.recorded"
    GATE_CLOSED = "gate.closed"
    ACCEPT_RECORDED = "accept.recorded"
    ACCEPT_OPENED = "accept.opened"
    ACCEPT_PLANNED = "accept.planned"
    PUBLISH_LISTS_WRITTEN = "publish.lists_written"
    PUBLISH_MANIFEST_WRITTEN = "publish.manifest_written"
    PUBLISH_COMMITTED = "publish.committed"
    BINDINGS_LISTED = "bindings.listed"
    BINDINGS_FOLDED = "bindings.folded"
    BINDINGS_REMOVED = "bindings.removed"
    COMPACT_LEASED = "compact.leased"
    COMPACT_PLANNED = "compact.planned"
    COMPACT_FILE_STAGED = "compact.file_staged"
    COMPACT_FILE_NAMED = "compact.file_named"
    COMPACT_FILES_WRITTEN = "compact.files_written"
    COMPACT_VERIFIED = "compact.verified"
    COMPACT_LISTS_WRITTEN = "compact.lists_written"
    COMPACT_MANIFEST_WRITTEN = "compact.manifest_written"
    COMPACT_COMMITTED = "compact.committed"
    MERGE_LEASED = "merge.leased"
    MERGE_RECORDED = "merge.recorded"
    MERGE_FILES_WRITTEN = "merge.files_written"
    MERGE_VERIFIED = "merge.verified"
    MERGE_LISTS_WRITTEN = "merge.lists_written"
    MERGE_MANIFEST_WRITTEN = "merge.manifest_written"
    MERGE_COMMITTED = "merge.committed"
    SWEEP_CONDEMNED = "sweep.condemned"
    SWEEP_REMOVED = "sweep.removed"
    REGISTER_ENROLLED = "register.enrolled"
    REGISTER_REGISTERED = "register.registered"
    TARGET_ADOPTED = "target.adopted"
    DELIVER_PARTS_WRITTEN = "deliver.parts_written"
    DELIVER_FINISHED = "deliver.finished"
    DELIVER_SETTLED = "deliver.settled"
    DELIVER_COMMITTED = "deliver.committed"
    DELIVER_STOPPED = "deliver.stopped"
    FILE_NAMED = "file.named"
    FILE_RECORDED = "file.recorded"
    COLLECTION_CHANGES_WRITTEN = "collection.changes_written"
    OUTPUT_MENDED = "output.mended"
    OUTPUT_GIVEN_UP = "output.given_up"
    RECONCILED = "reconcile.judged"
    RESUME_WRITTEN = "resume.written"
    RESUME_COMMITTED = "resume.committed"
    RESUME_OPENED = "resume.opened"
    REWIND_ANNOUNCED = "rewind.announced"
    REWIND_COMMITTED = "rewind.committed"
    FORGOTTEN = "forget.forgotten"
    PIPELINE_MARKED = "forget.pipeline_marked"
    PIPELINE_WRITER_FORGOTTEN = "forget.pipeline_writer"
    PIPELINE_LETTERS_REMOVED = "forget.pipeline_letters"
    PIPELINE_BINDINGS_FORGOTTEN = "forget.pipeline_bindings"
    PIPELINE_FILES_REMOVED = "forget.pipeline_files"
    PIPELINE_FORGOTTEN = "forget.pipeline_forgotten"
    ACKNOWLEDGE_COPIED = "acknowledge.copied"
    ACKNOWLEDGE_RECORDED = "acknowledge.recorded"
    ACKNOWLEDGE_SETTLED = "acknowledge.settled"
    ACKNOWLEDGE_COMMITTED = "acknowledge.committed"
    REDELIVER_MARKED = "redeliver.marked"
    REDELIVER_WRITTEN = "redeliver.written"
    REDELIVER_RECORDED = "redeliver.recorded"
    OFFSETS_PLANNED = "offsets.planned"
    OFFSETS_COMPACTED = "offsets.compacted"
    OUTPUT_FORGOTTEN = "forget.output_removed"
    CONSUMER_ENDED = "consumer.ended"
    CONSUMER_WITHDRAWN = "consumer.withdrawn"
    RENDITION_CREATED = "rendition.created"
    RENDITION_DECLARED = "rendition.declared"
    RENDITION_REPORTED = "rendition_report.kept"
    RENDITION_VERIFIED = "rendition.verified"
    RENDITION_REVOKED = "rendition.revoked"
    RENDITION_TAINTED = "rendition.tainted"
    RENDITION_ABANDONED = "rendition.abandoned"
    FRONTIER_ADVANCED = "frontier.advanced"
    HANDOVER_UPPER_ADVANCED = "handover.upper_advanced"
    HANDOVER_COMMITTED = "handover.committed"
    RETIRE_SINCE_RAISED = "retire.since_raised"
    RETIRE_RETIRING = "retire.retiring"
    RETIRE_TOMBSTONED = "retire.tombstoned"
    TABLE_DROPPED = "tables.dropped"
    RETIRE_PLACE_DROPPED = "retire.place_dropped"
    RETIRE_DROPPED = "retire.dropped"
    TRIM_SINCE_RAISED = "trim.since_raised"
    TRIM_VERSIONS_DROPPED = "trim.versions_dropped"
    TRIM_CHANGES_DROPPED = "trim.changes_dropped"
    TRIM_RECORDED = "trim.recorded"
    WORK_HINTED = "work.hinted"
    WORK_BURIED = "work.buried"
    WORK_RECORDED = "work.recorded"
    WORK_COMMITTED = "work.committed"
    WORK_EMPTIED = "work.emptied"
    WORK_DISPOSED = "work.disposed"
    WORK_REDRIVEN = "work.redriven"
    WORK_SEEN = "work.seen"
    EXPIRY_OPENED = "expiry.opened"
    EXPIRY_PLANNED = "expiry.planned"
    EXPIRY_HELD = "expiry.held"
    EXPIRY_INTENDED = "expiry.intended"
    EXPIRY_SENT = "expiry.sent"
    EXPIRY_RECORDED = "expiry.recorded"
    EXPIRY_RECOVERED = "expiry.recovered"
    EXPIRY_PINNED = "expiry.pinned"
    EXPIRY_REPORTED = "expiry.reported"
    EXPIRY_RELEASED = "expiry.released"
    EXPIRY_FORGOTTEN = "expiry.forgotten"
    STATE_FILE_WRITTEN = "state_file.written"
    STATE_FILE_NAMED = "state_file.named"
    STATE_FILE_DURABLE = "state_file.durable"
    SYNC_DUMPED = "sync.dumped"
    SYNC_DIFFED = "sync.diffed"
    SYNC_BATCH_READ = "sync.batch_read"
    SYNC_BATCH_SENT = "sync.batch_sent"
    SYNC_SENT = "sync.sent"
    SYNC_REPORTED = "sync.reported"


def reach(point: FaultPoint) -> None:
    """Crash or suspend the process, if ``TIDEMARK_FAULT`` names this point."""
    wanted = os.environ.get(VARIABLE)
    if wanted == point:
        die(point)
    elif wanted == f"{point}{PAUSE}":
        os.kill(os.getpid(), signal.SIGSTOP)


def at_once(most: int) -> int:
    """The size of a batch: ``most``, or less where ``TIDEMARK_AT_ONCE`` says so."""
    return min(most, int(os.environ.get(AT_ONCE, most)))


def die(point: FaultPoint) -> None:
    """Kill this process with SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)
