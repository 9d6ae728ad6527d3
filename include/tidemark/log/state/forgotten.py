"""A log that is being forgotten: a mark in the log object, from the first step of the removal to the last.

While it is there, nothing is bound and no writer is registered, and ``tidemark status`` shows the log's gate
as closed: what is half removed never looks healthy. The mark keeps what was decided (whether the log's files
go too, and where they lie), so that the same command finishes what one that was killed has begun. The last
step removes the mark with everything else of the log but what people decided and the newest token of its
lease: tokens must never come back.
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
from tidemark.log.state.readers import PREFIX as READERS
from tidemark.log.state.readers import Reader

MARK = "forgetting"
FORGET = "forget"
"""What is kept of a removal among the decisions, which outlive it."""
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
        reason: Why.
        at: When it was begun, in µs.
        root: The log's folder, where its files go too; None where they stay.
        topic_ids: See ``decision_row``: kept before the bindings go, which have them.
    """

    who: str
    reason: str
    at: int
    root: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Forgetting | None":
        """The mark, where the log object has it; its row must have been asked for."""
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
    """Nothing may be added to a pipeline whose removal has begun."""

    needs_person = True

    pipeline: str
    mark: Forgetting

    text = "{pipeline}: {problem}. Nothing was changed."

    @property
    def problem(self) -> str:
        """The removal in progress, and how to finish it."""
        return self.mark.said(self.pipeline)


@with_fields
class LogInUse(LogError):
    """The files of a log are being read."""

    pipeline: str
    readers: Sequence[Reader]

    text = (
        "{pipeline}: the log's files are being read by {names}. Nothing was changed. Wait for it to end and "
        "try again; one that was killed is forgotten at {until}."
    )

    @property
    def names(self) -> str:
        """The readers."""
        return ", ".join(one.who for one in self.readers)

    @property
    def until(self) -> str:
        """The last deadline of a reader."""
        return utc_time_text(max(one.deadline for one in self.readers))


@dataclass(frozen=True, slots=True)
class EndedRemoval:
    """A removal of an earlier pipeline of the same name."""

    at: int
    """When it was begun, in µs."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """See ``decision_row``; empty in rows of versions that did not keep them."""


def forgettings(control: LogControl) -> list[EndedRemoval]:
    """The removals of earlier pipelines of this name that have ended, oldest first."""
    rows = (json.loads(body) for body in control.log_rows(DECISION).values())
    return [EndedRemoval(row["at"], row.get("topic_ids", {})) for row in rows if row["what"] == FORGET]


def read_mark(control: LogControl) -> Forgetting | None:
    """The removal that has begun and not ended; None where there is none."""
    return Forgetting.of(control.read_log_rows([MARK]))


def refuse_forgotten(control: LogControl) -> None:
    """Refuse to add to a pipeline whose removal has begun."""
    refuse_marked(control.pipeline, control.read_log_rows([MARK]))


def refuse_marked(pipeline: str, snapshot: Snapshot) -> None:
    """The same by rows that were read already, so that a compare-and-set is refused by it."""
    if mark := Forgetting.of(snapshot):
        raise BeingForgotten(pipeline, mark)


def refuse_readers(control: LogControl, now: int) -> None:
    """Refuse to remove files that a living process reads."""
    readers = [Reader.from_json(body) for body in control.log_rows(READERS).values()]
    if living := [one for one in readers if one.deadline > now]:
        raise LogInUse(control.pipeline, living)


def source_topics(control: LogControl) -> dict[str, str]:
    """See ``decision_row``."""
    recreations = Recreations.of(control.accepted_losses())
    ids = control.bindings_head().topic_ids
    return {topic: "" if recreations.newest(topic) else id_ for topic, id_ in ids.items()}


def begin_forgetting(control: LogControl, mark: Forgetting) -> Forgetting:
    """Mark the log, unless a compaction has it; what was decided by one that was killed stays decided.

    Only where the log's files stayed they may still go.
    """

    def decide(snapshot: Snapshot) -> tuple[Change | None, Forgetting]:
        refuse_while_held(control.pipeline, snapshot, mark.at, "forgetting the pipeline is refused")
        begun = Forgetting.of(snapshot)
        if begun is not None and (begun.root is not None or mark.root is None):
            return None, begun
        further = replace(mark, topic_ids=begun.topic_ids) if begun else mark  # bindings may be gone by now
        return Change({MARK: further.to_json()}), further

    return control.amend_log([LEASE_ROW, MARK], decide)


def end_forgetting(control: LogControl, decision: AuditEntry, topic_ids: Mapping[str, str]) -> None:
    """Remove everything of the log object but what people decided, and the token of its newest lease."""

    def decide(snapshot: Snapshot) -> tuple[Change | None, None]:
        if MARK not in snapshot.rows:
            return None, None  # another process has finished it
        lease = LeaseRow(token=LeaseRow.of(snapshot).token)
        puts = {LEASE_ROW: lease.to_json(), **decision_row(decision, topic_ids)}
        return Change(puts, ranges=ALL_BUT_DECISIONS_AND_LEASE), None

    control.amend_log([HEAD, LEASE_ROW, MARK], decide)
