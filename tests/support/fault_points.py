"""Every fault point, by the operation that reaches it: the lists that the fault walks go through.

``tests/unit/test_faults.py`` checks that each point stands in exactly one list.
"""

from tidemark.faults import FaultPoint


def _of(*prefixes: str) -> tuple[FaultPoint, ...]:
    return tuple(point for point in FaultPoint if point.startswith(prefixes))


REPLICATE = _of("bind.", "capture.", "audit.", "publish.")
"""Walked in ``tests/unit/log/test_fault_walk.py``, like the next two."""
ARCHIVE = _of("bindings.")
"""Walked in ``tests/unit/log/test_archive.py``."""
ACCEPT = (FaultPoint.GATE_CLOSED, FaultPoint.ACCEPT_RECORDED, FaultPoint.ACCEPT_OPENED)
ACCEPT_PLAN = (FaultPoint.ACCEPT_PLANNED,)
SWEEP = _of("sweep.")
"""Walked in ``tests/unit/log/test_sweep.py`` and ``tests/unit/compaction/test_fault_walk.py``."""
COMPACT = _of("compact.")
"""Walked in ``tests/unit/compaction/test_fault_walk.py``."""
MERGE = _of("merge.")
"""Walked in ``tests/unit/compaction/test_merging.py``."""
DELIVER = (
    FaultPoint.REGISTER_ENROLLED,
    FaultPoint.REGISTER_REGISTERED,
    *_of("deliver.", "file.", "resume.", "rewind.", "acknowledge.", "redeliver."),
)
"""Walked in ``tests/unit/delivery/test_delivery_faults.py``."""
FORGET_WRITER = (FaultPoint.FORGOTTEN, FaultPoint.OUTPUT_FORGOTTEN)
"""Walked in ``tests/unit/delivery/test_registration.py``."""
FORGET_PIPELINE = _of("forget.pipeline_")
"""Walked in ``tests/unit/delivery/test_forget_pipeline.py``."""
COMPACT_OFFSETS = _of("offsets.")
"""Walked in ``tests/unit/delivery/test_offset_log_compaction.py``."""
ADOPT_TARGET = _of("target.")
"""Walked in ``tests/unit/delivery/test_target_replaced.py``."""
COLLECTION = _of("collection.")
"""Walked in ``tests/unit/collection/tables/test_writing.py``, and with Cassandra in
``tests/system/test_collection_tables.py``."""
OUTPUTS = _of("output.")
"""Walked in ``tests/unit/verification/test_files_output.py``."""
RECONCILE = _of("reconcile.")
"""Walked in ``tests/spark/test_reconcile.py``."""
BEGIN_BEHIND_POINTERS = (FaultPoint.TAKEN_OVER,)
"""Walked in ``tests/unit/writers/test_take_over.py``."""
TAKE_OVER = (FaultPoint.TAKE_OVER_DATED, FaultPoint.TAKE_OVER_OPENED)
"""Walked in ``tests/unit/writers/test_take_back.py``."""
HAND_BACK = _of("hand_back.")
"""Walked in ``tests/unit/writers/test_hand_back.py``."""
EXPIRY = _of("expiry.")
"""Walked in ``tests/unit/expiry``."""
SYNC = _of("sync.")
"""Walked in ``tests/unit/oplog/sync/test_fault_walk.py``."""
END_CONSUMER = _of("consumer.")
"""Walked in ``tests/unit/delivery/renditions/test_ended_consumer.py``."""
RENDITION = _of("rendition.", "frontier.")
HANDOVER = _of("handover.")
RETIRE = _of("retire.")
TRIM = _of("trim.")
"""Walked in ``tests/unit/outputs/state/test_crash_walk.py``, like the three before."""
RENDITION_REPORT = _of("rendition_report.")
"""Walked in ``tests/unit/app/test_rendition_verification.py``."""
DROP_TABLES = _of("tables.")
"""Walked in ``tests/unit/writers/test_removals.py``."""
WORK = _of("work.")
"""Walked in ``tests/unit/work/test_fault_walk.py``."""
STATE_FILE = _of("state_file.")
"""Walked in ``tests/unit/oplog/consumer/test_state_file_faults.py``."""

EVERY_LIST = (
    REPLICATE,
    ARCHIVE,
    ACCEPT,
    ACCEPT_PLAN,
    SWEEP,
    COMPACT,
    MERGE,
    DELIVER,
    FORGET_WRITER,
    FORGET_PIPELINE,
    COMPACT_OFFSETS,
    ADOPT_TARGET,
    COLLECTION,
    OUTPUTS,
    RECONCILE,
    BEGIN_BEHIND_POINTERS,
    TAKE_OVER,
    HAND_BACK,
    EXPIRY,
    SYNC,
    END_CONSUMER,
    RENDITION,
    HANDOVER,
    RETIRE,
    TRIM,
    RENDITION_REPORT,
    DROP_TABLES,
    WORK,
    STATE_FILE,
)
