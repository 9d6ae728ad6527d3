"""The log's state in the control plane: its bindings, which manifest is the log, and its gate.

Two objects per pipeline. ``bindings`` has the row ``head`` (how far the source is bound), one row per
binding, one per run that made one and one per loss that was accepted; ``log`` has the row ``head``, the row
``gate`` while it is closed, one row per capture that was accepted in spite of its audit, and one per decision
a person took. What is decided with them is in ``bind.py``, ``publish.py`` and ``accept.py``. Compaction has
further rows in ``log``, so that whatever must not happen at the same time is settled by one compare-and-set:
``lease`` (``lease.py``), ``pin/…`` (``pins.py``), ``hold/…`` (``holds.py``), ``reader/…`` (``readers.py``),
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
from tidemark.consensus.update import update
from tidemark.log.errors import BadBinding
from tidemark.log.model.binding import NOTHING_YET, Binding, TopicPartition, reached_offsets
from tidemark.log.model.gate import LogGate
from tidemark.log.model.loss import AcceptedLoss, reached_after
from tidemark.log.model.manifest import Manifest

HEAD = "head"
GATE = "gate"
DECISION = "decision/"
PAGE = 200
_MUCH_YOUNGER = 3_600_000_000
"""µs by which two clocks, or a time of a binding and the clock, may be apart."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class BindingsHead:
    """How far the source is bound."""

    version: int = ABSENT
    upper: int = 0
    """The first time (µs) not yet bound."""
    newest: int | None = None
    """The ``t`` of the newest binding."""
    reached: dict[TopicPartition, int] = field(default_factory=dict)
    """The next offset of every partition ever bound."""
    topic_ids: dict[str, str] = field(default_factory=dict)
    """The id of every topic ever bound, as it was when it was bound last, or accepted as made again since."""

    def to_json(self) -> str:
        """The row as the control plane keeps it."""
        places = [[topic, partition, offset] for (topic, partition), offset in sorted(self.reached.items())]
        row = {"upper": self.upper, "newest": self.newest, "reached": places, "topics": self.topic_ids}
        return json.dumps(row)


@dataclass(frozen=True, slots=True)
class LogHead:
    """Which manifest is the log, and what it amounts to."""

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
        """The head as it was then."""
        body = json.loads(snapshot.rows[HEAD]) if HEAD in snapshot.rows else {}
        return cls(version=snapshot.version, **body)

    @classmethod
    def naming(cls, manifest: Manifest, path: str, digest: str, root: str | None = None) -> "LogHead":
        """The head that makes a manifest the log; ``root`` is the log's folder."""
        return cls(
            manifest=path,
            digest=digest,
            root=root,
            segments=len(manifest.segments),
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
"""The subject is why the gate was closed; of anything else, what it came to."""


def decision_row(decision: AuditEntry, topic_ids: Mapping[str, str] | None = None) -> dict[str, str]:
    """The row of what a person did about a closed gate, or to the log's folder.

    ``topic_ids`` is of a pipeline that was forgotten: the ids of its source's topics, none (``""``) where
    another one had the name before.
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
        """The control plane that it reads and changes."""
        return self._consensus

    def bindings_head(self) -> BindingsHead:
        """How far the source is bound."""
        snapshot = self._consensus.read(self._bindings, [HEAD])
        if HEAD not in snapshot.rows:
            return BindingsHead(version=snapshot.version)
        body = json.loads(snapshot.rows[HEAD])
        reached = {(topic, partition): offset for topic, partition, offset in body["reached"]}
        return BindingsHead(snapshot.version, body["upper"], body["newest"], reached, body.get("topics", {}))

    def binding(self, t: int) -> Binding:
        """The binding at ``t``."""
        rows = self._consensus.read(self._bindings, [_row(t)]).rows
        if not rows:
            raise BadBinding(
                f"{self.pipeline}: there is no binding at {t}. Nothing was done; look at tidemark status."
            )
        return Binding.from_json(rows[_row(t)])

    def binding_of_run(self, run_id: str) -> Binding | None:
        """The binding that a run has made, if it has."""
        rows = self._consensus.read(self._bindings, [f"run/{run_id}"]).rows
        return self.binding(int(rows[f"run/{run_id}"])) if rows else None

    def bindings_after(self, position: int) -> list[Binding]:
        """The bindings that own ids beyond ``position``, oldest first; only those are read."""
        found: list[Binding] = []
        before = None
        while rows := self._consensus.scan(self._bindings, "t/", before=before, limit=PAGE).rows:
            page = [Binding.from_json(body) for body in rows.values()]
            found = [binding for binding in page if binding.end > position] + found
            if page[0].end <= position or len(page) < PAGE:
                break
            before = min(rows)
        return found

    def bindings_younger(self, t: int) -> list[Binding]:
        """The bindings after a time, oldest first; only those are read."""
        found: list[Binding] = []
        before = None
        while rows := self._consensus.scan(self._bindings, "t/", before=before, limit=PAGE).rows:
            page = [Binding.from_json(body) for body in rows.values()]
            found = [binding for binding in page if binding.t > t] + found
            if page[0].t <= t or len(page) < PAGE:
                break
            before = min(rows)
        return found

    def offsets_before(
        self, binding: Binding, is_same: Callable[[str, Binding], bool] = lambda topic, older: True
    ) -> dict[TopicPartition, int]:
        """The last offset bound before a binding, of those of its partitions that were bound before.

        ``is_same`` says whether an older binding's topic is the one that has the name in this binding.
        """
        wanted = {(s.topic, s.partition) for s in binding.slices}
        found: dict[TopicPartition, int] = {}
        before = _row(binding.t)
        while wanted - found.keys():
            rows = self._consensus.scan(self._bindings, "t/", before=before, limit=PAGE).rows
            if not rows:
                break
            for body in reversed(list(rows.values())):
                older = Binding.from_json(body)
                own = older.offsets_at(older.end).items()
                found = {**{place: at for place, at in own if is_same(place[0], older)}, **found}
            before = min(rows)
        return {place: offset for place, offset in found.items() if place in wanted}

    def last_bound(self, topic: str, position: int, found: int) -> Binding | None:
        """The last binding of a topic whose ids are at or below a position; ``found`` is a time (µs) of which
        it is known that the binding is not much younger: where looking for it begins."""
        before = _row(found + _MUCH_YOUNGER) if found else None
        while rows := self._consensus.scan(self._bindings, "t/", before=before, limit=PAGE).rows:
            for body in reversed(list(rows.values())):
                binding = Binding.from_json(body)
                if binding.end <= position and any(s.topic == topic for s in binding.slices):
                    return binding
            before = min(rows)
        return None

    def add_binding(self, head: BindingsHead, binding: Binding) -> None:
        """Commit a binding; raises ``Outpaced`` where another process changed the bindings since ``head``."""
        after = replace(
            head,
            upper=binding.t + 1,
            newest=binding.t,
            reached=reached_offsets(head.reached, binding.slices),
            topic_ids={**head.topic_ids, **binding.topic_ids},
        )
        puts = {
            HEAD: after.to_json(),
            _row(binding.t): binding.to_json(),
            f"run/{binding.run_id}": str(binding.t),
        }
        self._consensus.commit(self._bindings, head.version, Change(puts))

    def start_from(self, head: BindingsHead, reached: Mapping[TopicPartition, int]) -> BindingsHead:
        """Make the source begin at these offsets instead of the earliest; raises ``Outpaced``."""
        begun = replace(head, reached=dict(reached))
        version = self._consensus.commit(self._bindings, head.version, Change({HEAD: begun.to_json()}))
        return replace(begun, version=version)

    def advance_upper(self, head: BindingsHead, upper: int) -> None:
        """Record that up to ``upper`` there was nothing new to bind."""
        puts = {HEAD: replace(head, upper=max(upper, head.upper)).to_json()}
        self._consensus.commit(self._bindings, head.version, Change(puts))

    def forget_bindings(self) -> None:
        """Remove every binding and how far the source is bound: only for a pipeline that is forgotten."""
        everything = Change(ranges=[RowRange("", AFTER_EVERY_NAME)])
        update(
            self._consensus,
            self._bindings,
            [HEAD],
            lambda found: (None if found.version == ABSENT else everything, None),
        )

    def accepted_losses(self) -> list[AcceptedLoss]:
        """Every loss that a person has accepted, in the order of the ids they stand before."""
        rows = self._consensus.scan(self._bindings, "lost/", limit=100_000).rows
        return sorted((AcceptedLoss.from_json(body) for body in rows.values()), key=lambda one: one.after)

    def record_losses(self, head: BindingsHead, losses: list[AcceptedLoss]) -> None:
        """Record accepted losses, and continue the source behind them; raises ``Outpaced``."""
        reached, topic_ids = reached_after(head.reached, head.topic_ids, [one.loss for one in losses])
        puts = {one.row: one.to_json() for one in losses}
        puts[HEAD] = replace(head, reached=reached, topic_ids=topic_ids).to_json()
        self._consensus.commit(self._bindings, head.version, Change(puts))

    def replace_losses(self, head: BindingsHead, losses: Sequence[AcceptedLoss]) -> None:
        """Replace recorded losses; raises ``Outpaced``."""
        puts = {one.row: one.to_json() for one in losses}
        self._consensus.commit(self._bindings, head.version, Change(puts))

    def log_head(self) -> LogHead:
        """Which manifest is the log now."""
        return self._log_rows([])[0]

    def log_rows(self, prefix: str) -> Mapping[str, str]:
        """The rows of the log whose names begin so."""
        return self.scan_log(prefix, 100_000).rows

    def scan_log(self, prefix: str, limit: int) -> Snapshot:
        """The last rows of the log whose names begin so."""
        return self._consensus.scan(self._log, prefix, limit=limit)

    def read_log_rows(self, rows: Sequence[str]) -> Snapshot:
        """These rows of the log, those that exist."""
        return self._consensus.read(self._log, rows)

    def amend_log(
        self, rows: Sequence[str], decide: Callable[[Snapshot], tuple[Change | None, Answer]]
    ) -> Answer:
        """Change the log object by what these rows of it are; see ``update``."""
        return update(self._consensus, self._log, rows, decide)

    def writer_names(self) -> list[str]:
        """The writers of this pipeline that ever were in the control plane, as far as it can list them."""
        prefix = f"{self.pipeline}/"
        return [name.removeprefix(prefix) for name in self._consensus.names(ObjectKind.WRITER, prefix)]

    def log_gate(self) -> LogGate | None:
        """Why the log's gate is closed; None when it is open."""
        return self._log_rows([GATE])[1]

    def is_accepted(self, t: int, captured: str) -> bool:
        """Whether a person has accepted this very capture in spite of its audit."""
        rows = self._consensus.read(self._log, [_accepted(t)]).rows
        return bool(rows) and json.loads(rows[_accepted(t)])["captured"] == captured

    def replace_log(self, expected: int, head: LogHead) -> LogHead:
        """Make another manifest the log; returns the new head; raises ``Outpaced``.

        A gate that was closed because of a binding that is published by this is opened.
        """
        _, gate = self._log_rows([GATE])
        deletes = [GATE] if gate and gate.t is not None and gate.t <= head.t else []
        change = Change({HEAD: head.to_json()}, deletes)
        return replace(head, version=self._consensus.commit(self._log, expected, change))

    def close_gate(self, gate: LogGate) -> LogGate:
        """Close the gate; one that is closed for the same reason already stays as it is."""

        def decide(snapshot: Snapshot) -> tuple[Change | None, LogGate]:
            found = _gate(snapshot)
            if found and found.is_about(gate):
                return None, found
            return Change({GATE: gate.to_json()}), gate

        return self.amend_log([GATE], decide)

    def open_gate(self, gate: LogGate, decision: AuditEntry | None = None) -> bool:
        """Open the gate and keep what a person decided; False when it is not closed for this reason."""
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
        """Keep what a person decided beside the gate."""
        self.amend_log([HEAD], lambda _: (Change(decision_row(decision)), None))

    def decisions(self) -> list[AuditEntry]:
        """What people decided about this log, oldest first."""
        rows = self._consensus.scan(self._log, DECISION, limit=100_000).rows
        return [LOG_AUDIT.from_json(body) for body in rows.values()]

    def _log_rows(self, further: list[str]) -> tuple[LogHead, LogGate | None]:
        snapshot = self._consensus.read(self._log, [HEAD, *further])
        return LogHead.of(snapshot), _gate(snapshot)


def _gate(snapshot: Snapshot) -> LogGate | None:
    return LogGate.from_json(snapshot.rows[GATE]) if GATE in snapshot.rows else None


def _row(t: int) -> str:
    return f"t/{t:020d}"


def _accepted(t: int) -> str:
    return f"accepted/{t:020d}"
