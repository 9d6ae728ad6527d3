"""Whether a follow may begin: an open log gate, no error that a run would only meet again, free leases, and
writers that the pipeline does not wait for.

Reads the control plane only. The engine is checked by the caller, which knows how to reach it.
"""

from tidemark.app.follow.failures import declared_digest
from tidemark.app.follow.rounds import follow_holder
from tidemark.app.open_pipeline import OpenPipeline
from tidemark.clock import Clock, utc_text, wall_clock
from tidemark.consensus.lease import lease_of_another
from tidemark.delivery.renditions.selection import active_state
from tidemark.log.state.control import LogControl
from tidemark.log.state.followed import read_follow_failure
from tidemark.pipeline.model import OnFailure


def why_not_ready(opened: OpenPipeline, run_id: str, clock: Clock = wall_clock) -> str | None:
    """Why a run has to wait before it follows; None where it need not.

    A stopped writer makes it wait only where it stops the whole pipeline; else it is left out of the rounds.
    """
    pipeline = opened.pipeline
    gate = LogControl(opened.consensus, pipeline.name).log_gate()
    if gate is not None:
        return (
            f"{pipeline.name}: the log's gate is closed: {gate.reason}. Repair the cause and run "
            f"{pipeline.name}.replicate, or accept it: tidemark log accept {pipeline.name}"
        )
    holder, now = follow_holder(pipeline.name, run_id), clock()
    failure = read_follow_failure(opened.consensus, pipeline.name)
    if failure and now < failure.until and failure.declared == declared_digest(pipeline):
        return (
            f"{pipeline.name}: the last run ended with an error that needs a person: {failure.error} The "
            f"next run begins at {utc_text(failure.until)}, or when the pipeline's file has changed"
        )
    for declared in pipeline.writers:
        state = active_state(opened.positions, declared.name)
        if state is None:
            continue
        if state.gate is not None:
            if pipeline.on_failure is OnFailure.STOP_PIPELINE:
                return opened.advice(declared.name).sentence
        elif other := lease_of_another(state.lease, holder, now):
            return f"{pipeline.name}/{declared.name}: {other.holder} has this writer until {other.until}"
    return None
