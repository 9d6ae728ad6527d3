"""publish: make a captured and audited binding part of the log.

It writes a new manifest file, then makes it the log by one compare-and-set. Publishing is idempotent. A
capture without an audit is not published, nor one that failed its audit, unless an operator has accepted it.
"""

from tidemark.consensus.update import retry_outpaced
from tidemark.errors import with_fields
from tidemark.faults import FaultPoint, reach
from tidemark.log.errors import LogError
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.binding import Binding
from tidemark.log.model.captured import Captured
from tidemark.log.model.gate import LogGate, LogGateCause, LogStopped
from tidemark.log.model.manifest import Manifest
from tidemark.log.state.control import LogControl, LogHead
from tidemark.log.state.lease import head_for_publication


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
    control: LogControl, folder: LogFolder, binding: Binding, segment_bytes: int, now: int
) -> LogHead:
    """Add the binding's files to the log; returns the log's head afterwards."""
    published = control.log_head()
    if published.t >= binding.t:
        return published
    _refuse_out_of_turn(control, binding, published)
    captured = _captured(control, folder, binding)
    require_audit(control, folder, binding, now)
    for file in captured.files:
        folder.verify(file)
    published = _make_current(control, folder, binding, captured, segment_bytes)
    reach(FaultPoint.PUBLISH_COMMITTED)
    folder.sweep(published.t)
    return published


def _make_current(
    control: LogControl, folder: LogFolder, binding: Binding, captured: Captured, segment_bytes: int
) -> LogHead:
    """Add the files to the current manifest; starts over where another manifest became the log meanwhile."""

    def attempt(before: LogHead) -> LogHead:
        if before.t >= binding.t:
            return before
        _refuse_out_of_turn(control, binding, before)
        manifest = read_manifest(control.pipeline, folder, before).with_binding(
            binding.t, binding.end, captured.files, segment_bytes
        )
        listed = folder.with_lists(manifest)
        reach(FaultPoint.PUBLISH_LISTS_WRITTEN)
        path, digest = folder.write_manifest(listed)
        reach(FaultPoint.PUBLISH_MANIFEST_WRITTEN)
        return control.replace_log(before.version, LogHead.naming(manifest, path, digest, folder.root))

    # Readers and compaction change the same object.
    return retry_outpaced(lambda: head_for_publication(control), attempt)


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
