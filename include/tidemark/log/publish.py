"""publish: make a captured and audited binding part of the log.

It writes a new manifest file, then makes it the log by one compare-and-set. Publishing is idempotent. A
capture without an audit is not published, nor one that failed its audit, unless an operator has accepted it.
The same manifest names the lists of bindings that leave the control plane (``log/bindings/archive.py``).
"""

from dataclasses import replace

import structlog

from tidemark.consensus.update import retry_outpaced
from tidemark.errors import with_fields
from tidemark.faults import FaultPoint, reach
from tidemark.log.bindings.archive import Archiving, archive_bindings, remove_archived
from tidemark.log.errors import LogError
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.binding import Binding
from tidemark.log.model.binding_list import BindingLists
from tidemark.log.model.captured import Captured
from tidemark.log.model.gate import LogGate, LogGateCause, LogStopped
from tidemark.log.model.manifest import Manifest
from tidemark.log.state.control import LogControl, LogHead
from tidemark.log.state.lease import head_for_publication

events = structlog.get_logger()


@with_fields
class NotCaptured(LogError):
    """A binding cannot be published before its capture has finished."""

    pipeline: str
    t: int

    text = (
        "{pipeline}: the binding at {t} has no finished capture. Nothing was published. Clear the capture "
        "task of this run to do it again."
    )


@with_fields
class NotAudited(LogError):
    """A capture cannot be published before its audit."""

    pipeline: str
    t: int

    text = (
        "{pipeline}: the capture of the binding at {t} was not audited. Nothing was published. Clear the "
        "capture task of this run to do it again."
    )


@with_fields
class OutOfTurn(LogError):
    """A binding cannot be published while an older one is not.

    Attributes:
        pipeline: The pipeline's name.
        t: The binding.
        base: Its first id.
        end: The last id of the log.
    """

    pipeline: str
    t: int
    base: int
    end: int

    text = (
        "{pipeline}: the binding at {t} begins with id {base}, but the log ends at {end}. Nothing was "
        "published. Run the pipeline's replicate DAG: it finishes the older binding first."
    )


def read_log(control: LogControl, folder: LogFolder) -> Manifest:
    """The manifest that is the log now; an empty one when nothing was published."""
    return read_manifest(control.pipeline, folder, control.log_head())


def read_manifest(pipeline: str, folder: LogFolder, head: LogHead) -> Manifest:
    """The manifest that a head names; an empty one when nothing was published."""
    if head.manifest is None or head.digest is None:
        return Manifest(pipeline)
    return folder.read_manifest(head.manifest, head.digest)


def require_audit(control: LogControl, folder: LogFolder, binding: Binding, now: int) -> AuditRecord:
    """The audit that permits the publication; a failed and not accepted audit closes the log's gate."""
    audit = folder.read_audit(binding.t)
    if audit is not None and control.log_head().t >= binding.t:
        return audit  # published already; a sweep may have removed the record of the capture
    captured = _captured(control, folder, binding)
    if audit is None or audit.captured != captured.digest:
        raise NotAudited(control.pipeline, binding.t)
    if not audit.passed and not control.is_accepted(binding.t, captured.digest):
        gate = control.close_gate(_failed(binding, audit, now))
        reach(FaultPoint.GATE_CLOSED)
        if not control.is_accepted(binding.t, captured.digest):
            raise LogStopped(control.pipeline, gate)
        control.open_gate(gate)  # an operator accepted it meanwhile and must not have to do so again
    return audit


def publish(
    control: LogControl,
    folder: LogFolder,
    binding: Binding,
    segment_bytes: int,
    now: int,
    archiving: Archiving | None = None,
) -> LogHead:
    """Add the binding's files to the log; returns the log's head afterwards.

    ``archiving`` says which bindings leave the control plane with this publication; None: none.
    """
    published = control.log_head()
    if published.t >= binding.t:
        return published
    _refuse_out_of_turn(control, binding, published)
    captured = _captured(control, folder, binding)
    require_audit(control, folder, binding, now)
    for file in captured.files:
        folder.verify(file)
    published, lists = _make_current(control, folder, binding, captured, segment_bytes, archiving)
    reach(FaultPoint.PUBLISH_COMMITTED)
    if archiving is not None:
        _remove_archived(control, folder, lists)
    folder.sweep(published.t)
    return published


def _make_current(
    control: LogControl,
    folder: LogFolder,
    binding: Binding,
    captured: Captured,
    segment_bytes: int,
    archiving: Archiving | None,
) -> tuple[LogHead, BindingLists]:
    """Add the files to the current manifest; starts over where another manifest became the log meanwhile.

    Returns the log's head, and the binding lists of the manifest that this process has published.
    """
    archived: dict[BindingLists, BindingLists] = {}
    made: dict[str | None, tuple[LogHead, BindingLists]] = {}
    written: dict[str, str] = {}

    def make(before: LogHead) -> tuple[LogHead, BindingLists]:
        manifest = read_manifest(control.pipeline, folder, before).with_binding(
            binding.t, binding.end, captured.files, segment_bytes
        )
        if archiving is not None:
            before_it = manifest.bindings
            if before_it not in archived:
                archived[before_it] = _archived(control, folder, manifest, archiving)
            manifest = replace(manifest, bindings=archived[before_it])
        listed = folder.with_lists(manifest, written=written)
        reach(FaultPoint.PUBLISH_LISTS_WRITTEN)
        path, digest = folder.write_manifest(listed)
        reach(FaultPoint.PUBLISH_MANIFEST_WRITTEN)
        return LogHead.naming(manifest, path, digest, folder.root), manifest.bindings

    def attempt(before: LogHead) -> tuple[LogHead, BindingLists]:
        if before.t >= binding.t:
            return before, BindingLists()
        _refuse_out_of_turn(control, binding, before)
        # Readers and leases change other rows of the same object every few seconds. The first publication
        # after an upgrade writes all lists: it must not do so again for each of them.
        if before.manifest not in made:
            made[before.manifest] = make(before)
        named, lists = made[before.manifest]
        return control.replace_log(before.version, named), lists

    # Readers and compaction change the same object.
    return retry_outpaced(lambda: head_for_publication(control), attempt)


def _archived(
    control: LogControl, folder: LogFolder, manifest: Manifest, archiving: Archiving
) -> BindingLists:
    """The manifest's binding lists with those bindings that leave now. A list that cannot be read or written
    never stops a publication: the bindings stay where they are."""
    try:
        return archive_bindings(control, folder.root, manifest.bindings, manifest.t, archiving)
    except (LogError, OSError) as error:
        events.warning("bindings not archived", pipeline=control.pipeline, error=str(error))
        return manifest.bindings


def _remove_archived(control: LogControl, folder: LogFolder, lists: BindingLists) -> None:
    try:
        if removed := remove_archived(control, folder.root, lists):
            events.info("bindings archived", pipeline=control.pipeline, removed=removed, in_lists=lists.count)
    except (LogError, OSError) as error:
        events.warning("archived bindings not removed", pipeline=control.pipeline, error=str(error))


def _refuse_out_of_turn(control: LogControl, binding: Binding, head: LogHead) -> None:
    if binding.base != head.end + 1:
        raise OutOfTurn(control.pipeline, binding.t, binding.base, head.end)


def _captured(control: LogControl, folder: LogFolder, binding: Binding) -> Captured:
    captured = folder.read_captured(binding.t)
    if captured is None:
        raise NotCaptured(control.pipeline, binding.t)
    return captured


def _failed(binding: Binding, audit: AuditRecord, now: int) -> LogGate:
    failures = list(audit.failures)
    # A failure without ids may affect the whole binding.
    ids = [j.ids or (binding.base, binding.end) for j in failures]
    said = "; ".join(f"{j.title}: {j.detail}" for j in failures)
    return LogGate(
        cause=LogGateCause.AUDIT,
        reason=f"the capture of the binding at {binding.t} failed its audit ({said})",
        t=binding.t,
        ids=(min(first for first, _ in ids), max(last for _, last in ids)),
        losses=(),
        captured=audit.captured,
        at=now,
    )
