"""resume of any writer: redelivers, or repeats the verification that closed the gate.

A journal is only verified again. For files and topics, what is missing is delivered first.
"""

from collections.abc import Callable

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.delivery.resume import Resumed
from tidemark.delivery.state.writer_state import Cause
from tidemark.verification.outputs.reconcile import is_output
from tidemark.verification.outputs.repair import mend_output
from tidemark.verification.reconcile import reopen_gate
from tidemark.writers.journal.writer import JournalWriter


def resume(opened: OpenPipeline, name: str, holder: str, show: Callable[[str], object]) -> Resumed:
    """Resume a stopped writer; returns its position and whether the gate is still closed."""
    writer, state = opened.writer(name), opened.state(name)
    gate = state.gate if state else None
    if gate is None or gate.cause is not Cause.VERIFICATION:
        return opened.resume(name, holder, show)
    if is_output(writer):
        with opened.log.held(holder) as log:
            return mend_output(writer, log, opened.positions, gate, holder, show)
    if not isinstance(writer, JournalWriter):
        return opened.resume(name, holder, show)
    with opened.log.held(holder) as log:
        reopen_gate(writer, gate, log, opened.positions, holder, show)
    show(f"{opened.pipeline.name}/{name}: verified again, the gate is open")
    return Resumed(state.position if state else -1, 0, None)
