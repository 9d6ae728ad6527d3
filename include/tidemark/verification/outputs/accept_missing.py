"""``--let-go``: accepts that files are missing which the log cannot produce again.

An operator decides that, and the decision is recorded for ever. It is only possible for files that are
missing: a damaged one is moved away first, and then produced again from the log where the log still has all
its messages.
"""

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.lease_holder import holding
from tidemark.delivery.operator.action_plan import ActionPlan, NotPossible, refuse_held, take_as_seen
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause
from tidemark.delivery.writer import Writer
from tidemark.faults import FaultPoint, reach
from tidemark.verification.outputs.files import verify_files
from tidemark.verification.outputs.found import Extent, OutputProblem
from tidemark.writers.files.ledger import GivenUp
from tidemark.writers.files.writer import FilesWriter

LETTING_GO = "letting files go"
MOST_NAMED = 20


def plan_let_go(
    writer: Writer, log: PublishedLog, positions: Positions, clock: Clock = wall_clock
) -> ActionPlan:
    """The plan that excludes a writer's missing files from verification.

    Its gate opens where a verification closed it and nothing else is different. Raises ``NotPossible`` where
    no file is missing, or where the writer writes no files.
    """
    state = positions.load(writer.name)
    if not isinstance(writer, FilesWriter):
        problem = (
            "only files can be let go. A topic with a hole is filled anew by a rewind into an empty one."
        )
        raise NotPossible(positions.pipeline, writer.name, problem)
    ledger = writer.ledger
    if state is None or ledger is None:
        raise NotPossible(positions.pipeline, writer.name, "it has delivered nothing yet.")
    refuse_held(state, LETTING_GO, clock())
    found = verify_files(writer, log, positions, state, Extent())
    missing = [one.where for one in found.of(OutputProblem.MISSING)]
    if not missing:
        raise NotPossible(state.pipeline, state.name, "no file of it is missing.")
    is_closed = state.gate is not None and state.gate.cause is Cause.VERIFICATION
    opens = is_closed and len(missing) == len(found.differences)

    def execute(entry: AuditEntry) -> None:
        with holding(take_as_seen(positions, state, LETTING_GO, clock)) as hold:
            for name in missing:
                ledger.give_up(GivenUp(name, entry.who, entry.reason, entry.at))
            reach(FaultPoint.OUTPUT_GIVEN_UP)
            gate = None if opens else state.gate
            hold.change(
                lambda held, _: positions.commit(
                    held, held.position, None, gate, None, positions.audit_row(held, entry)
                )
            )

    more = len(missing) - MOST_NAMED
    lines = [
        *(f"{name} is let go: no verification asks for it any more" for name in missing[:MOST_NAMED]),
        *([f"and {more} more"] if more > 0 else []),
        "the gate opens" if opens else "the gate stays as it is",
    ]
    return ActionPlan("let go", state.pipeline, state.name, tuple(lines), {"files": missing}, execute)
