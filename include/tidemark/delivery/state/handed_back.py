"""Writers whose tables were handed back to a kafka-journal replicator: only a take-over opens their gate.

The replicator may have written any number of messages, with write times later than those of bindings that are
already in the log. Only a take-over compares both. Every other way to open the gate, or to write to the
target while it is closed, is refused here.
"""

from collections.abc import Iterable

from tidemark.clock import utc_text
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.state.writer_state import Cause, HandedBack, WriterGate, WriterState, is_forgetting
from tidemark.errors import with_fields

HAND_BACK = "hand back"
LEFT = "leave to a replicator"
TAKE_OVER = "take over"
"""These actions in a writer's audit entries, which outlive the writer."""


@with_fields
class TablesHandedBack(DeliveryError):
    """The writer's tables belong to a kafka-journal replicator until they are taken over.

    Attributes:
        pipeline: The pipeline's name.
        writer: The writer's name.
        handed_back: When, by which operator or run, and why.
    """

    needs_person = True

    pipeline: str
    writer: str
    handed_back: HandedBack

    def __str__(self) -> str:
        since = utc_text(self.handed_back.at)
        return (
            f"{self.pipeline}/{self.writer}: its tables are a kafka-journal replicator's since {since} "
            f"({self.handed_back.by}: {self.handed_back.reason.rstrip('.')}). Nothing was changed. Stop "
            f"the replicator, then take them over: {take_over_command(self.pipeline, self.writer)}"
        )


def take_over_command(pipeline: str, writer: str) -> str:
    """The only command that opens the gate of such a writer."""
    return f"tidemark journal take-over {pipeline} {writer}"


def refuse_handed_back(state: WriterState, handed_back: HandedBack | None) -> None:
    """Raise ``TablesHandedBack`` where the writer's tables belong to another replicator."""
    if handed_back:
        raise TablesHandedBack(state.pipeline, state.name, handed_back)


def closing(state: WriterState, cause: Cause, handed_back: HandedBack) -> WriterGate:
    """The gate of a writer whose tables belong to another replicator, closed at its position."""
    stopped = state.position + 1
    verb = "handed back by" if cause is Cause.HAND else "left to another replicator by"
    reason = f"{verb} {handed_back.by}: {handed_back.reason}"
    return WriterGate(cause, stopped, stopped, state.position, reason, handed_back.at)


def handed_back_before(deeds: Iterable[AuditEntry], keyspace: str | None) -> HandedBack | None:
    """The hand-back that still applies to a writer of this name, by its audit entries, oldest first; None for
    none.

    A hand-back outlives the writer, so that one that was forgotten and registered again does not write the
    tables. It applies to one keyspace: with another one the writer begins like any new one.
    """
    # An entry of a writer with another keyspace is void once that writer is forgotten.
    last = before = None
    for deed in deeds:
        if deed.what in (HAND_BACK, LEFT, TAKE_OVER):
            last = deed
        elif is_forgetting(deed):
            last = before = last if deed.about in (None, keyspace) else before
    return None if last is None or last.what == TAKE_OVER else HandedBack(last.at, last.who, last.reason)
