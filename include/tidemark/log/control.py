"""The log's state in the control plane: its bindings, and which manifest is the log.

Two objects per pipeline. ``bindings`` has the row ``head`` (how far the source is bound), one row per
binding and one per run that made one; ``log`` has the row ``head``. What is decided with them is in
``bind.py`` and ``publish.py``.
"""

import json
from dataclasses import asdict, dataclass, field, replace

from tidemark.consensus.objects import ABSENT, Change, Consensus, Kind, ObjectKey
from tidemark.log.binding import NOTHING_YET, Binding, TopicPartition, reached_offsets
from tidemark.log.errors import BadBinding

HEAD = "head"
PAGE = 200


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


class LogControl:
    """Reads and changes one pipeline's bindings and log object; every change is a compare-and-set."""

    def __init__(self, consensus: Consensus, pipeline: str) -> None:
        self._consensus = consensus
        self.pipeline = pipeline
        self._bindings = ObjectKey(Kind.BINDINGS, pipeline)
        self._log = ObjectKey(Kind.LOG, pipeline)

    def bindings_head(self) -> BindingsHead:
        """How far the source is bound."""
        snapshot = self._consensus.read(self._bindings, [HEAD])
        if HEAD not in snapshot.rows:
            return BindingsHead(version=snapshot.version)
        body = json.loads(snapshot.rows[HEAD])
        reached = {(topic, partition): offset for topic, partition, offset in body["reached"]}
        return BindingsHead(snapshot.version, body["upper"], body["newest"], reached)

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

    def add_binding(self, head: BindingsHead, binding: Binding) -> None:
        """Make a binding durable, if nobody was faster."""
        reached = reached_offsets(head.reached, binding.slices)
        puts = {
            HEAD: _head_row(binding.t + 1, binding.t, reached),
            _row(binding.t): binding.to_json(),
            f"run/{binding.run_id}": str(binding.t),
        }
        self._consensus.commit(self._bindings, head.version, Change(puts))

    def advance_upper(self, head: BindingsHead, upper: int) -> None:
        """Record that up to ``upper`` there was nothing new to bind."""
        puts = {HEAD: _head_row(max(upper, head.upper), head.newest, head.reached)}
        self._consensus.commit(self._bindings, head.version, Change(puts))

    def log_head(self) -> LogHead:
        """Which manifest is the log now."""
        snapshot = self._consensus.read(self._log, [HEAD])
        if HEAD not in snapshot.rows:
            return LogHead(version=snapshot.version)
        return LogHead(version=snapshot.version, **json.loads(snapshot.rows[HEAD]))

    def replace_log(self, expected: int, head: LogHead) -> LogHead:
        """Make another manifest the log, if nobody was faster; the head as it is then."""
        body = asdict(head)
        del body["version"]
        version = self._consensus.commit(self._log, expected, Change({HEAD: json.dumps(body)}))
        return replace(head, version=version)


def _row(t: int) -> str:
    return f"t/{t:020d}"


def _head_row(upper: int, newest: int | None, reached: dict[TopicPartition, int]) -> str:
    places = [[topic, partition, offset] for (topic, partition), offset in sorted(reached.items())]
    return json.dumps({"upper": upper, "newest": newest, "reached": places})
