"""A writer whose tables a kafka-journal replicator may have written since: nothing but a take-over opens it.

The tables may have moved on by any number of messages, with write times that are later than those of bindings
which are in the log already. Only a take-over looks at both; every other way to open the gate, or to write to
the target while it is closed, is refused here.
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
"""What is kept of these among a writer's deeds, which outlive the writer."""


@with_fields
class TablesHandedBack(DeliveryError):
    """Something was asked of a writer that only a take-over may do."""

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
    """The one command that opens the gate of such a writer."""
    return f"tidemark journal take-over {pipeline} {writer}"


def refuse_handed_back(state: WriterState, handed_back: HandedBack | None) -> None:
    """Refuse to open a gate, or to write behind it, while the tables are another replicator's."""
    if handed_back:
        raise TablesHandedBack(state.pipeline, state.name, handed_back)


def closing(state: WriterState, cause: Cause, handed_back: HandedBack) -> WriterGate:
    """The gate of a writer whose tables are another replicator's: closed where it is."""
    stopped = state.position + 1
    verb = "handed back by" if cause is Cause.HAND else "left to another replicator by"
    reason = f"{verb} {handed_back.by}: {handed_back.reason}"
    return WriterGate(cause, stopped, stopped, state.position, reason, handed_back.at)


def handed_back_before(deeds: Iterable[AuditEntry], keyspace: str | None) -> HandedBack | None:
    """What is to be remembered of a writer that was forgotten and is registered again; deeds oldest first.

    What was handed back are the tables of a keyspace: with another one the writer begins as any new one.
    """
    last = before = None  # what a writer with another keyspace did is over when that one is forgotten
    for deed in deeds:
        if deed.what in (HAND_BACK, LEFT, TAKE_OVER):
            last = deed
        elif is_forgetting(deed):
            last = before = last if deed.about in (None, keyspace) else before
    return None if last is None or last.what == TAKE_OVER else HandedBack(last.at, last.who, last.reason)
