"""A log that is being forgotten: a mark in the log object, from the first step of the removal to the last.

While the mark exists, nothing is bound, no writer is registered, and ``tidemark status`` shows the log's gate
as closed, so that a half-removed pipeline never looks healthy. The mark stores what the operator chose
(whether the log's files are removed too, and their folder), so that the same command can finish an
interrupted removal. The last step deletes the mark and all other rows of the log object, except operators'
decisions and the newest fencing token of the lease: a token must never be reused.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from tidemark.clock import utc_text, utc_time_text
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.objects import AFTER_EVERY_NAME, Change, RowRange, Snapshot
from tidemark.errors import with_fields
from tidemark.log.errors import LogError
from tidemark.log.model.recreated_topics import Recreations
from tidemark.log.state.control import DECISION, HEAD, LogControl, decision_row
from tidemark.log.state.lease import LEASE_ROW, LeaseRow, refuse_while_held
from tidemark.log.state.readers import Reader, readers

MARK = "forgetting"
FORGET = "forget"
"""The kind of the decision that records a removal; decisions outlive it."""
ALL_BUT_DECISIONS_AND_LEASE = (
    RowRange("", DECISION),
    RowRange(DECISION + AFTER_EVERY_NAME, LEASE_ROW),
    RowRange(LEASE_ROW + "\0", AFTER_EVERY_NAME),
)


@dataclass(frozen=True, slots=True)
class Forgetting:
    """A removal that has begun.

    Attributes:
        who: The operator that began it.
        reason: The operator's reason.
        at: When it began, in µs.
        root: The log's folder if its files are removed too, else None.
        topic_ids: See ``decision_row``; copied from the bindings before those are deleted.
    """

    who: str
    reason: str
    at: int
    root: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Forgetting | None":
        """The mark; None where there is none. The snapshot must have been read with the row ``MARK``."""
        return cls(**json.loads(snapshot.rows[MARK])) if MARK in snapshot.rows else None

    def to_json(self) -> str:
        """The row as the control plane keeps it."""
        return json.dumps(asdict(self))

    def said(self, pipeline: str) -> str:
        """The removal in progress and how to finish it, as text for operators."""
        began = utc_text(self.at)
        return (
            f"{self.who} began to forget this pipeline at {began} ({self.reason}), and parts of it are gone. "
            f'Finish it with: tidemark pipelines forget {pipeline} --execute --reason "…"'
        )


@with_fields
class BeingForgotten(LogError):
    """A change of a pipeline was refused because its removal has begun."""

    needs_person = True

    pipeline: str
    mark: Forgetting

    text = "{pipeline}: {problem}. Nothing was changed."

    @property
    def problem(self) -> str:
        """The removal in progress and how to finish it."""
        return self.mark.said(self.pipeline)


@with_fields
class LogInUse(LogError):
    """Removing a log's files was refused because a process reads them."""

    pipeline: str
    readers: Sequence[Reader]

    text = (
        "{pipeline}: the log's files are being read by {names}. Nothing was changed. Wait for it to end and "
        "try again; one that was killed is forgotten at {until}."
    )

    @property
    def names(self) -> str:
        """The readers' names."""
        return ", ".join(one.who for one in self.readers)

    @property
    def until(self) -> str:
        """The latest deadline of the readers."""
        return utc_time_text(max(one.deadline for one in self.readers))


@dataclass(frozen=True, slots=True)
class EndedRemoval:
    """A finished removal of an earlier pipeline of the same name."""

    at: int
    """When it began, in µs."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """See ``decision_row``; empty in rows of versions that did not keep them."""


def forgettings(control: LogControl) -> list[EndedRemoval]:
    """The finished removals of earlier pipelines of this name, oldest first."""
    rows = (json.loads(body) for body in control.log_rows(DECISION).values())
    return [EndedRemoval(row["at"], row.get("topic_ids", {})) for row in rows if row["what"] == FORGET]


def read_mark(control: LogControl) -> Forgetting | None:
    """The unfinished removal; None where there is none."""
    return Forgetting.of(control.read_log_rows([MARK]))


def refuse_forgotten(control: LogControl) -> None:
    """Raise ``BeingForgotten`` where the pipeline's removal has begun."""
    refuse_marked(control.pipeline, control.read_log_rows([MARK]))


def refuse_marked(pipeline: str, snapshot: Snapshot) -> None:
    """The same check on a snapshot, so that it is part of the caller's compare-and-set."""
    if mark := Forgetting.of(snapshot):
        raise BeingForgotten(pipeline, mark)


def refuse_readers(control: LogControl, now: int) -> None:
    """Raise ``LogInUse`` where a reader's deadline has not passed."""
    if living := readers(control, now):
        raise LogInUse(control.pipeline, living)


def source_topics(control: LogControl) -> dict[str, str]:
    """The ``topic_ids`` of ``decision_row``, from the bindings and the accepted losses."""
    recreations = Recreations.of(control.accepted_losses())
    ids = control.bindings_head().topic_ids
    return {topic: "" if recreations.newest(topic) else id_ for topic, id_ in ids.items()}


def begin_forgetting(control: LogControl, mark: Forgetting) -> Forgetting:
    """Mark the log and return the mark in force; refused while a compaction holds the lease.

    The mark of an interrupted removal stays in force. The one permitted change is that the log's files are
    now removed too.
    """

    def decide(snapshot: Snapshot) -> tuple[Change | None, Forgetting]:
        refuse_while_held(control.pipeline, snapshot, mark.at, "forgetting the pipeline is refused")
        begun = Forgetting.of(snapshot)
        if begun is not None and (begun.root is not None or mark.root is None):
            return None, begun
        further = replace(mark, topic_ids=begun.topic_ids) if begun else mark  # bindings may be deleted
        return Change({MARK: further.to_json()}), further

    return control.amend_log([LEASE_ROW, MARK], decide)


def end_forgetting(control: LogControl, decision: AuditEntry, topic_ids: Mapping[str, str]) -> None:
    """Delete all rows of the log object except operators' decisions and the lease's fencing token."""

    def decide(snapshot: Snapshot) -> tuple[Change | None, None]:
        if MARK not in snapshot.rows:
            return None, None  # another process has finished it
        lease = LeaseRow(token=LeaseRow.of(snapshot).token)
        puts = {LEASE_ROW: lease.to_json(), **decision_row(decision, topic_ids)}
        return Change(puts, ranges=ALL_BUT_DECISIONS_AND_LEASE), None

    control.amend_log([HEAD, LEASE_ROW, MARK], decide)
