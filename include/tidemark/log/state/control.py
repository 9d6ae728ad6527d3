"""The log's state in the control plane: its bindings, which manifest is the log, and its gate.

Two objects per pipeline:

- ``bindings``: the row ``head`` (how far the source is bound), one row per binding, one per run that created
  a binding, and one per accepted loss. Old bindings leave with the rows of their runs: read bindings through
  ``log/bindings/door.py``, which finds them wherever they are.
- ``log``: the row ``head``, the row ``gate`` while the gate is closed, one row per capture that was accepted
  although it failed its audit, and one per decision of an operator.

This module only reads and writes the rows; the rules are in ``bind.py``, ``publish.py`` and ``accept.py``.
Compaction keeps its rows in ``log`` too, so that a compare-and-set excludes operations that must not overlap:
``lease`` (``lease.py``), ``pin/…`` (``pins.py``), ``hold/…`` (``holds.py``), ``readers`` (``readers.py``),
``writer/…`` (``registered_writers.py``), ``compaction/…`` (``compactions.py``) and, while the pipeline is
being removed, ``forgetting`` (``forgotten.py``).
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TypeVar

from tidemark.consensus.audit_trail import AuditEntry, AuditFormat
from tidemark.consensus.objects import (
    ABSENT,
    AFTER_EVERY_NAME,
    Change,
    Consensus,
    ObjectKey,
    ObjectKind,
    RowRange,
    Snapshot,
)
from tidemark.consensus.update import Patience, update
from tidemark.log.model.binding import NOTHING_YET, Binding, TopicPartition, reached_offsets
from tidemark.log.model.bound_times import BoundTimes
from tidemark.log.model.fixed_partitions import FixedPartitions
from tidemark.log.model.gate import LogGate
from tidemark.log.model.loss import AcceptedLoss, reached_after
from tidemark.log.model.manifest import Manifest
from tidemark.log.model.recreated_topics import of_whole_topics

HEAD = "head"
GATE = "gate"
DECISION = "decision/"
BINDING = "t/"
RUN = "run/"
PAGE = 200

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class BindingsHead:
    """How far the source is bound."""

    version: int = ABSENT
    upper: int = 0
    """The first time (µs) not yet bound."""
    newest: int | None = None
    """The ``t`` of the newest binding; None before the first."""
    reached: dict[TopicPartition, int] = field(default_factory=dict)
    """The next offset of every partition ever bound."""
    topic_ids: dict[str, str] = field(default_factory=dict)
    """Kafka's id of every topic ever bound: at its last binding, or of its recreation accepted since."""
    removed: int = NOTHING_YET
    """The rows of bindings up to this time were removed, because binding lists have them; −1: none."""
    partitions: dict[str, FixedPartitions] = field(default_factory=dict)
    """The partition counts of topics of which they are fixed."""
    bound: BoundTimes | None = field(default=None, compare=False)
    """When partitions were last bound; None where a process of an earlier version wrote the head. How far the
    source is bound does not depend on it."""

    @property
    def bound_times(self) -> BoundTimes:
        """When partitions were last bound, as far as that is known."""
        return self.bound or BoundTimes(since=NOTHING_YET if self.newest is None else self.newest)

    def to_json(self) -> str:
        """The row as the control plane keeps it."""
        places = [[topic, partition, offset] for (topic, partition), offset in sorted(self.reached.items())]
        row = {"upper": self.upper, "newest": self.newest, "reached": places, "topics": self.topic_ids}
        removed = {} if self.removed == NOTHING_YET else {"removed": self.removed}
        bound = {} if self.bound is None else {"bound": self.bound.to_row()}
        fixed = {"partitions": self.partitions} if self.partitions else {}
        return json.dumps({**row, **removed, **fixed, **bound})


@dataclass(frozen=True, slots=True)
class LogHead:
    """The manifest that is the log now, with its totals."""

    version: int = ABSENT
    manifest: str | None = None
    digest: str | None = None
    t: int = 0
    end: int = NOTHING_YET
    compacted_below: int = 0
    segments: int = 0
    bytes: int = 0
    count: int = 0
    root: str | None = None
    """The log's folder; None in rows of versions that did not keep it."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> "LogHead":
        """The head in a snapshot of the log object."""
        body = json.loads(snapshot.rows[HEAD]) if HEAD in snapshot.rows else {}
        return cls(version=snapshot.version, **body)

    @classmethod
    def naming(cls, manifest: Manifest, path: str, digest: str, root: str | None = None) -> "LogHead":
        """The head that makes a manifest the log; ``root`` is the log's folder."""
        return cls(
            manifest=path,
            digest=digest,
            root=root,
            segments=manifest.segment_count,
            t=manifest.t,
            end=manifest.end,
            compacted_below=manifest.compacted_below,
            bytes=manifest.bytes,
            count=manifest.count,
        )

    def to_json(self) -> str:
        """The row as the control plane keeps it."""
        body = asdict(self)
        del body["version"]
        return json.dumps(body)


LOG_AUDIT = AuditFormat(about="gate")
"""The entry's subject is the gate's cause; for entries that concern no gate, the result of the action."""


def decision_row(decision: AuditEntry, topic_ids: Mapping[str, str] | None = None) -> dict[str, str]:
    """The row of an operator's decision about a closed gate or the log's folder.

    ``topic_ids`` is set when the pipeline was forgotten: Kafka's ids of its source topics, ``""`` for a topic
    that was recreated while the pipeline read it.
    """
    return {f"{DECISION}{decision.at:020d}": LOG_AUDIT.to_json(decision, topic_ids=dict(topic_ids or {}))}


class LogControl:
    """Reads and changes one pipeline's bindings and log object; every change is a compare-and-set."""

    def __init__(self, consensus: Consensus, pipeline: str) -> None:
        self._consensus = consensus
        self.pipeline = pipeline
        self._bindings = ObjectKey(ObjectKind.BINDINGS, pipeline)
        self._log = ObjectKey(ObjectKind.LOG, pipeline)

    @property
    def consensus(self) -> Consensus:
        """The control plane."""
        return self._consensus

    def bindings_head(self) -> BindingsHead:
        """How far the source is bound."""
        return _bindings_head(self._consensus.read(self._bindings, [HEAD]))

    def binding_at(self, t: int) -> Binding | None:
        """The row of the binding at ``t``; None where it is not, or not any more, in the control plane."""
        rows = self._consensus.read(self._bindings, [_row(t)]).rows
        return Binding.from_json(rows[_row(t)]) if rows else None

    def bindings_at(self, times: Sequence[int]) -> list[Binding]:
        """The rows of the bindings at these times, oldest first, in one read; without those that are not, or
        not any more, in the control plane."""
        rows = self._consensus.read(self._bindings, [_row(t) for t in times]).rows
        return [Binding.from_json(rows[name]) for name in sorted(rows)]

    def run_rows(self, run_id: str) -> tuple[int | None, BindingsHead]:
        """The time of the binding that a run has created, where the control plane still has the run's row;
        and the head at the same version."""
        row = _run_row(run_id)
        snapshot = self._consensus.read(self._bindings, [HEAD, row])
        return int(snapshot.rows[row]) if row in snapshot.rows else None, _bindings_head(snapshot)

    def binding_rows(
        self, after: int, before: int | None = None, limit: int = PAGE, *, first: bool = False
    ) -> list[Binding]:
        """The last rows of bindings between two times (both excluded), oldest first; with ``first`` the
        first ones. Only the door to bindings and what archives them read rows (``log/bindings``).
        """
        rows = self._consensus.scan(
            self._bindings,
            BINDING,
            since=_row(after + 1),
            before=None if before is None else _row(before),
            limit=limit,
            first=first,
        ).rows
        return [Binding.from_json(body) for body in rows.values()]

    def remove_bindings(self, bindings: Sequence[Binding]) -> None:
        """Remove the rows of bindings that a binding list has, and of the runs that made them.

        The bindings must be consecutive, the first of them the oldest that the control plane has.
        """
        last = bindings[-1].t
        runs = {_run_row(binding.run_id): str(binding.t) for binding in bindings}

        def decide(snapshot: Snapshot) -> tuple[Change | None, None]:
            head = _bindings_head(snapshot)
            if head.removed >= last or head.newest is None or head.newest <= last:
                return None, None
            own = [row for row, t in runs.items() if snapshot.rows.get(row) == t]
            rows = RowRange(_row(head.removed + 1), _row(last + 1))
            return Change({HEAD: replace(head, removed=last).to_json()}, own, [rows]), None

        update(self._consensus, self._bindings, [HEAD, *runs], decide)

    def add_binding(self, head: BindingsHead, binding: Binding) -> Binding:
        """Commit a binding, with the times at which its partitions were last bound; returns it with them.

        Raises ``Outpaced`` where another process changed the bindings since ``head``.
        """
        stored = replace(binding, last_bound=head.bound_times.before(binding.slices, head.newest))
        after = replace(
            head,
            upper=binding.t + 1,
            newest=binding.t,
            reached=reached_offsets(head.reached, binding.slices),
            topic_ids={**head.topic_ids, **binding.topic_ids},
            bound=head.bound_times.after(binding),
        )
        puts = {
            HEAD: after.to_json(),
            _row(binding.t): stored.to_json(),
            _run_row(binding.run_id): str(binding.t),
        }
        self._consensus.commit(self._bindings, head.version, Change(puts))
        return stored

    def start_from(self, head: BindingsHead, reached: Mapping[TopicPartition, int]) -> BindingsHead:
        """Make the source begin at these offsets instead of the earliest; raises ``Outpaced``."""
        begun = replace(head, reached=dict(reached))
        version = self._consensus.commit(self._bindings, head.version, Change({HEAD: begun.to_json()}))
        return replace(begun, version=version)

    def replace_head(self, head: BindingsHead, after: BindingsHead) -> None:
        """Record another head of the bindings; raises ``Outpaced``."""
        self._consensus.commit(self._bindings, head.version, Change({HEAD: after.to_json()}))

    def advance_upper(self, head: BindingsHead, upper: int) -> None:
        """Record that there was nothing to bind before ``upper``; raises ``Outpaced``."""
        puts = {HEAD: replace(head, upper=max(upper, head.upper)).to_json()}
        self._consensus.commit(self._bindings, head.version, Change(puts))

    def forget_bindings(self) -> None:
        """Delete all rows of the bindings object, also the head: only for a pipeline that is forgotten."""
        everything = Change(ranges=[RowRange("", AFTER_EVERY_NAME)])
        update(
            self._consensus,
            self._bindings,
            [HEAD],
            lambda found: (None if found.version == ABSENT else everything, None),
        )

    def accepted_losses(self) -> list[AcceptedLoss]:
        """All accepted losses, ordered by the id after which they occurred."""
        rows = self._consensus.scan(self._bindings, "lost/", limit=100_000).rows
        return sorted((AcceptedLoss.from_json(body) for body in rows.values()), key=lambda one: one.after)

    def record_losses(self, head: BindingsHead, losses: list[AcceptedLoss]) -> None:
        """Record accepted losses and move the source's offsets past them; raises ``Outpaced``."""
        reached, topic_ids = reached_after(head.reached, head.topic_ids, [one.loss for one in losses])
        puts = {one.row: one.to_json() for one in losses}
        # A recreated topic may have another number of partitions: it is recorded anew.
        gone = {one.loss.topic for one in of_whole_topics(losses)}
        fixed = {topic: counts for topic, counts in head.partitions.items() if topic not in gone}
        after = replace(head, reached=reached, topic_ids=topic_ids, partitions=fixed)
        puts[HEAD] = after.to_json()
        self._consensus.commit(self._bindings, head.version, Change(puts))

    def replace_losses(self, head: BindingsHead, losses: Sequence[AcceptedLoss]) -> None:
        """Overwrite recorded losses; raises ``Outpaced``."""
        puts = {one.row: one.to_json() for one in losses}
        self._consensus.commit(self._bindings, head.version, Change(puts))

    def log_head(self) -> LogHead:
        """The log's current head."""
        return self._log_rows([])[0]

    def log_rows(self, prefix: str) -> Mapping[str, str]:
        """The rows of the log object with names that begin with ``prefix``."""
        return self.scan_log(prefix, 100_000).rows

    def scan_log(self, prefix: str, limit: int) -> Snapshot:
        """The last ``limit`` rows of the log object with names that begin with ``prefix``."""
        return self._consensus.scan(self._log, prefix, limit=limit)

    def read_log_rows(self, rows: Sequence[str]) -> Snapshot:
        """The existing ones of these rows of the log object."""
        return self._consensus.read(self._log, rows)

    def amend_log(
        self,
        rows: Sequence[str],
        decide: Callable[[Snapshot], tuple[Change | None, Answer]],
        patience: Patience | None = None,
    ) -> Answer:
        """Change the log object depending on these rows of it, with retries; see ``update``."""
        return update(self._consensus, self._log, rows, decide, patience=patience)

    def writer_names(self) -> list[str]:
        """The pipeline's writers that have state in the control plane, as far as it can list objects."""
        prefix = f"{self.pipeline}/"
        return [name.removeprefix(prefix) for name in self._consensus.names(ObjectKind.WRITER, prefix)]

    def log_gate(self) -> LogGate | None:
        """Why the log's gate is closed; None when it is open."""
        return self._log_rows([GATE])[1]

    def is_accepted(self, t: int, captured: str) -> bool:
        """Whether an operator accepted this capture (by its digest) although it failed its audit."""
        rows = self._consensus.read(self._log, [_accepted(t)]).rows
        return bool(rows) and json.loads(rows[_accepted(t)])["captured"] == captured

    def replace_log(self, expected: int, head: LogHead) -> LogHead:
        """Make another manifest the log; returns the new head; raises ``Outpaced``.

        Opens a gate that was closed because of a binding that this manifest publishes.
        """
        _, gate = self._log_rows([GATE])
        deletes = [GATE] if gate and gate.t is not None and gate.t <= head.t else []
        change = Change({HEAD: head.to_json()}, deletes)
        return replace(head, version=self._consensus.commit(self._log, expected, change))

    def close_gate(self, gate: LogGate) -> LogGate:
        """Close the gate and return it; a gate that is already closed for the same reason is unchanged."""

        def decide(snapshot: Snapshot) -> tuple[Change | None, LogGate]:
            found = _gate(snapshot)
            if found and found.is_about(gate):
                return None, found
            return Change({GATE: gate.to_json()}), gate

        return self.amend_log([GATE], decide)

    def open_gate(self, gate: LogGate, decision: AuditEntry | None = None) -> bool:
        """Open the gate and record the operator's decision; False where it is not closed for this reason."""
        puts: dict[str, str] = {}
        if decision:
            puts |= decision_row(decision)
            if gate.t is not None and gate.captured:
                puts[_accepted(gate.t)] = LOG_AUDIT.to_json(decision, captured=gate.captured, topic_ids={})

        def decide(snapshot: Snapshot) -> tuple[Change | None, bool]:
            found = _gate(snapshot)
            if found is None or not found.is_about(gate):
                return None, False
            return Change(puts, [GATE]), True

        return self.amend_log([GATE], decide)

    def keep_decision(self, decision: AuditEntry) -> None:
        """Record an operator's decision that concerns no gate."""
        self.amend_log([HEAD], lambda _: (Change(decision_row(decision)), None))

    def decisions(self) -> list[AuditEntry]:
        """Operators' decisions about this log, oldest first."""
        rows = self._consensus.scan(self._log, DECISION, limit=100_000).rows
        return [LOG_AUDIT.from_json(body) for body in rows.values()]

    def _log_rows(self, further: list[str]) -> tuple[LogHead, LogGate | None]:
        snapshot = self._consensus.read(self._log, [HEAD, *further])
        return LogHead.of(snapshot), _gate(snapshot)


def _gate(snapshot: Snapshot) -> LogGate | None:
    return LogGate.from_json(snapshot.rows[GATE]) if GATE in snapshot.rows else None


def _bindings_head(snapshot: Snapshot) -> BindingsHead:
    if HEAD not in snapshot.rows:
        return BindingsHead(version=snapshot.version)
    body = json.loads(snapshot.rows[HEAD])
    reached = {(topic, partition): offset for topic, partition, offset in body["reached"]}
    return BindingsHead(
        snapshot.version,
        body["upper"],
        body["newest"],
        reached,
        body.get("topics", {}),
        body.get("removed", NOTHING_YET),
        {topic: FixedPartitions(*counts) for topic, counts in body.get("partitions", {}).items()},
        BoundTimes.from_row(body.get("bound")),
    )


def _row(t: int) -> str:
    return f"{BINDING}{t:020d}"


def _run_row(run_id: str) -> str:
    return f"{RUN}{run_id}"


def _accepted(t: int) -> str:
    return f"accepted/{t:020d}"
