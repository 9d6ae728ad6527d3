"""capture: the order in which the capture of one binding becomes durable.

Files first, then the record that names them, then what their audit found. Whoever comes later takes up where
this ended: files that are there are kept, a record that is there is believed once its files are verified.
Who reads Kafka and who judges is not decided here; nothing becomes visible here.
"""

from collections.abc import Callable, Sequence

from tidemark.faults import FaultPoint, reach
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.audit_result import AuditRecord, Judgement
from tidemark.log.model.captured import Captured


def capture(
    folder: LogFolder,
    t: int,
    read: Callable[[], Captured],
    audit: Callable[[Captured], Sequence[Judgement]],
) -> tuple[Captured, AuditRecord]:
    """Capture the binding at ``t`` with ``read``, unless that is done; then judge it with ``audit``."""
    captured = folder.read_captured(t)
    if captured is None:
        folder.require_writable(t)
        captured = read()
        reach(FaultPoint.CAPTURE_FILES_WRITTEN)
        folder.write_captured(captured)
        reach(FaultPoint.CAPTURE_RECORDED)
    else:
        for file in captured.files:
            folder.verify(file)
    record = AuditRecord(t, captured.digest, tuple(audit(captured)))
    folder.write_audit(record)
    reach(FaultPoint.AUDIT_RECORDED)
    return captured, record
