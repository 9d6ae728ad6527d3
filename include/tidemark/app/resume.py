"""resume of any writer: one whose gate a verification closed is verified again, all others redeliver.

A journal is only looked at again. Of files and topics, what is missing is delivered again first.
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
    """Let a stopped writer go on; what it came to."""
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
        reopen_gate(writer, log, opened.positions, opened.pipeline.log.path, gate, holder, show)
    show(f"{opened.pipeline.name}/{name}: verified again, the gate is open")
    return Resumed(state.position if state else -1, 0, None)
