"""capture: the records of one binding from Kafka into files of the log, audited and recorded.

From top to bottom, the order in which a capture becomes durable: plan which offsets to read, read them into a
staging area, count and adopt every file, record the files, audit them, record the audit. A later attempt
continues where this one ended: files that are in place are kept, and recorded files are verified, not written
again. Nothing becomes visible to readers of the log here. Spark is not imported: an engine reads Kafka.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

from tidemark.faults import FaultPoint, reach
from tidemark.log.bind import OffsetsLost, close_for_losses
from tidemark.log.errors import FileMissing, RecordsMissing
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.audit_result import AuditRecord, Judgement
from tidemark.log.model.binding import Available, Binding, Slice
from tidemark.log.model.captured import Captured
from tidemark.log.model.loss import find_losses_of, readable_slices
from tidemark.log.model.manifest import LogFile
from tidemark.log.state.control import LogControl

READERS = 2
"""How many staged files are read back at once: each takes one group of rows in memory."""

StillAvailable = Callable[[Collection[str]], Available]
"""What Kafka holds now of the named topics."""


class CaptureEngine(Protocol):
    """The two heavy parts of a capture: Spark in production."""

    def write_records(self, binding: Binding, slices: Sequence[Slice], area: str) -> int:
        """Write the records of the slices, with the log's columns, one Parquet file per Kafka partition.

        ``area`` is a folder that only this attempt uses and that does not exist yet. Returns how many records
        Kafka gave.
        """

    def audit(self, captured: Captured) -> Sequence[Judgement]:
        """Judge the files of a capture."""


def capture(
    control: LogControl,
    folder: LogFolder,
    binding: Binding,
    engine: CaptureEngine,
    still_available: StillAvailable,
    now: int,
    is_declared: Callable[[str], bool] = lambda namespace: True,
) -> tuple[Captured, AuditRecord]:
    """Capture a binding, unless its files are recorded already; then audit it.

    ``is_declared`` tells which namespaces the pipeline declares. Raises ``OffsetsLost``, and closes the log's
    gate at ``now``, where Kafka no longer has a bound offset.
    """
    captured = folder.read_captured(binding.t)
    if captured is None:
        folder.require_writable(binding.t)
        slices = plan_slices(control, binding, still_available, now)
        captured = write_or_find_recorded(folder, binding, slices, engine, is_declared)
        reach(FaultPoint.CAPTURE_FILES_WRITTEN)
        folder.write_captured(captured)
        reach(FaultPoint.CAPTURE_RECORDED)
    else:
        for file in captured.files:
            folder.verify(file)
    record = AuditRecord(binding.t, captured.digest, tuple(engine.audit(captured)))
    folder.write_audit(record)
    reach(FaultPoint.AUDIT_RECORDED)
    return captured, record


def plan_slices(
    control: LogControl, binding: Binding, still_available: StillAvailable, now: int
) -> Sequence[Slice]:
    """The slices to read: those of the binding without accepted losses.

    Refuses what Kafka no longer has whole, which closes the log's gate.
    """
    slices = readable_slices(binding, control.accepted_losses())
    available = still_available({s.topic for s in slices})
    if losses := list(find_losses_of(slices, binding.topic_ids, available)):
        lost = OffsetsLost(control.pipeline, tuple(losses), binding.t)
        close_for_losses(control, lost, now)
        raise lost
    return slices


def write_or_find_recorded(
    folder: LogFolder,
    binding: Binding,
    slices: Sequence[Slice],
    engine: CaptureEngine,
    is_declared: Callable[[str], bool],
) -> Captured:
    """Write the files of a binding, or find those that another attempt has recorded meanwhile.

    Once a binding is published, the staging areas of its other attempts are removed, whatever these have
    still in them: what such an attempt has found there says nothing about the binding.
    """
    try:
        written = write_files(folder, binding, slices, engine, is_declared)
    except FileMissing:
        recorded = folder.read_captured(binding.t)
        if recorded is None:
            raise
        return recorded
    return folder.read_captured(binding.t) or written


def write_files(
    folder: LogFolder,
    binding: Binding,
    slices: Sequence[Slice],
    engine: CaptureEngine,
    is_declared: Callable[[str], bool] = lambda namespace: True,
) -> Captured:
    """Read the slices and adopt one file per Kafka partition; the files in id order."""
    if not slices:
        return Captured(binding.t, (), rows_read=0)
    area = folder.new_area(binding.t)
    records = f"{area}/records"
    try:
        rows_read = engine.write_records(binding, slices, folder.area_at(records))
        adopt = partial(folder.adopt_file, binding, slices, is_declared=is_declared)
        # In this process: Python workers of Spark take longer to start than a run's files take to read.
        with ThreadPoolExecutor(READERS) as threads:
            adopted = [file for file in threads.map(adopt, folder.files_in(records)) if file is not None]
    finally:
        folder.remove_area(area)
    captured = tuple(sorted(adopted, key=lambda one: one.file.first_id))
    check_files([one.file for one in captured], slices, folder.pipeline)
    return Captured(binding.t, captured, rows_read)


def check_files(files: Sequence[LogFile], slices: Sequence[Slice], pipeline: str) -> None:
    """Refuse a capture that splits a slice over two files: the engine read other partitions than bound."""
    asked = {(s.topic, s.partition): (s.lower, s.upper) for s in slices}
    for place, count in Counter((file.topic, file.partition) for file in files).items():
        if place not in asked or count > 1:
            found = f"capture gave {count} file{'s' if count > 1 else ''} of it"
            raise RecordsMissing(pipeline, *place, *asked.get(place, (0, 0)), found)
