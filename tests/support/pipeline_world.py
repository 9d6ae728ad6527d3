"""A pipeline's log and writers in one line each: what the tests of delivery start from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.support.clocks import Clock
from tests.support.log_samples import given_binding, publish_all
from tests.support.log_world import PIPELINE, ControlPlaneWorld
from tests.support.memory_writers import Stream

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Consensus, ObjectKey, ObjectKind
from tidemark.delivery.binding_steps import WriteParts, write_parts_here
from tidemark.delivery.dead_letters.store import DeadLetterFiles
from tidemark.delivery.deliver import Delivered, deliver_again, deliver_to
from tidemark.delivery.operator.actions import OperatorActions
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.resume import Resumed, resume_writer
from tidemark.delivery.state.writer_state import Cause, WriterGate, WriterState
from tidemark.log.bindings.door import Bindings
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import Binding
from tidemark.writers.files.kind import FilesDeclaration
from tidemark.writers.files.writer import FilesWriter

NO_LIMIT = 1_000_000
HOLE = "-"

Values = str | Sequence[bytes | None]
"""The values of a topic's next messages, a letter each; ``-`` is an offset without a message. Or as bytes."""


@dataclass
class PipelineWorld(ControlPlaneWorld):
    """A pipeline ``orders`` with its control plane, its log and a clock."""

    root: Path
    consensus: Consensus = field(default_factory=MemoryConsensus)
    clock: Clock = field(default_factory=Clock)
    shown: list[str] = field(default_factory=list)
    """What resumes said."""

    @property
    def log(self) -> PublishedLog:
        return PublishedLog.open(self.control, str(self.root / "log"))

    @property
    def operator(self) -> OperatorActions:
        return OperatorActions(self.positions, self.log, self.clock)

    @property
    def letters(self) -> DeadLetterFiles:
        return DeadLetterFiles(PIPELINE, str(self.root / "log"))

    def publish(self, **topics: Values) -> Binding:
        """Bind, capture and publish what the topics have next."""
        head = self.control.bindings_head()
        previous = Bindings(self.control).at(head.newest) if head.newest is not None else None
        slices, values = [], {}
        for topic, given in sorted(topics.items()):
            lower = head.reached.get((topic, 0), 0)
            messages = [c.encode() if isinstance(c, str) else c for c in given]
            slices.append((topic, 0, lower, lower + len(messages)))
            values[topic, 0] = {
                lower + i: value for i, value in enumerate(messages) if value != HOLE.encode()
            }
        base = previous.end + 1 if previous else 0
        t = previous.t + 1_000 if previous else 1_000
        binding = given_binding(t, base, *slices, run_id=f"run-{t}")
        publish_all(self.control, LogFolder(PIPELINE, str(self.root / "log")), {binding: values})
        return binding

    def publish_ids(self, count: int) -> None:
        """Bindings of one message each, so that every id ends one."""
        for _ in range(count):
            self.publish(orders="a")

    def files_writer(self, name: str = "archive", **keys: object) -> FilesWriter:
        declared = {"name": name, "kind": "files", "path": str(self.root / name)} | keys
        declaration = FilesDeclaration.model_validate(declared, context={"TIDEMARK_TRANSFORMS": "tests"})
        return FilesWriter(PIPELINE, declaration, str(self.root / "log"))

    def register(self, writer: Any, position: int = -1) -> WriterState:
        return self.positions.register(writer.name, writer.shape, position)

    def deliver(self, writer: Any, holder: str = "run", **options: Any) -> Delivered:
        write_parts: WriteParts = options.pop("write_parts", write_parts_here)
        keys = {"limit": NO_LIMIT, "clock": self.clock, "reload": self.reload(writer)} | options
        return deliver_to(writer, self.log, self.positions, holder, write_parts, **keys)

    def deliver_again(self, writer: Any, from_t: int = 0, to_t: int = 10**15, **options: Any) -> Delivered:
        keys = {"clock": self.clock, "reload": self.reload(writer), "from_t": from_t, "to_t": to_t} | options
        return deliver_again(writer, self.log, self.positions, "backfill", write_parts_here, **keys)

    def resume(self, writer: Any, holder: str = "resume", **options: Any) -> Resumed:
        log = options.pop("log", None) or self.log
        keys = {"singly": 0, "show": self.shown.append, "clock": self.clock} | options
        return resume_writer(writer, log, self.positions, holder, **keys)

    def acknowledge(
        self, writer: Any, first: int, last: int | None = None, who: str = "ann", untried: bool = True
    ) -> None:
        """Let messages pass; where the target has failed, that takes a gate that was opened by hand."""
        state = self.positions.load(writer.name)
        if untried and state and state.gate and state.gate.cause is Cause.TARGET:
            self.operator.open(writer.name).execute(self.deed("open", who))
        plan = self.operator.acknowledge(writer, first, last, self.letters, untried=untried)
        plan.execute(self.deed("acknowledge", who))

    def rewind(self, name: str, position: int) -> None:
        self.operator.rewind(name, position).execute(self.deed("rewind"))

    def deed(self, what: str, who: str = "ann") -> AuditEntry:
        return AuditEntry(what, who, f"to test {what}", self.clock())

    def reload(self, writer: Any) -> Callable[[], WriterState | None]:
        return lambda: self.positions.load(writer.name)

    def state(self, writer: Any) -> WriterState:
        state = self.positions.load(writer.name)
        assert state is not None
        return state

    def position(self, writer: Any) -> int:
        return self.state(writer).position

    def gate(self, writer: Any) -> WriterGate | None:
        return self.state(writer).gate

    def close_gate(self, writer: Any, gate: WriterGate) -> WriterGate:
        """Close a gate as if something had failed."""
        state = self.state(writer)
        closed = self.positions.commit(state, state.position, None, gate).gate
        assert closed is not None
        return closed

    def forward(self, writer: Any, position: int) -> None:
        """Bring a writer somewhere by magic."""
        state = self.state(writer)
        self.positions.commit(state, position, None, state.gate)

    def output(self, name: str = "archive") -> dict[str, str]:
        """A files writer's files and the digests of their bytes; nothing that is staged."""
        return files_under(self.root / name)

    def rows(self, writer: Any) -> dict[str, str]:
        """Everything the control plane has of a writer."""
        return dict(self.consensus.scan(ObjectKey(ObjectKind.WRITER, f"{PIPELINE}/{writer.name}"), "").rows)


def files_under(folder: Path) -> dict[str, str]:
    found = sorted(path for path in folder.glob("*") if path.is_file())
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in found}


def plain(gate: WriterGate | None) -> WriterGate | None:
    """A gate without when it was closed and at which version."""
    return replace(gate, at=0, version=0) if gate else None


def given_failed_bulk(house: PipelineWorld, writer: Stream) -> Stream:
    """F1 and F2: ids 0 to 8 are delivered; 9 to 15 are not, because the target does not take 14."""
    house.publish(orders="a" * 9)
    house.publish(orders="a" * 7)
    writer.refused = {14}
    house.deliver(writer)
    writer.calls = []
    return writer


def given_stopped(house: PipelineWorld, writer: Stream, *bindings: str) -> Stream:
    """Published, and stopped at its first message."""
    for letters in bindings:
        house.publish(orders=letters)
    writer.bad = {0}
    house.deliver(writer)
    writer.bad, writer.calls = set(), []
    return writer


def given_gate(house: PipelineWorld, writer: Stream, cause: Cause, through: int) -> WriterGate:
    position = house.position(writer)
    gate = WriterGate(cause, position + 1, position + 1, through, "as it was given", house.clock())
    return house.close_gate(writer, gate)


def given_stopped_at(house: PipelineWorld, id_: int, writer: Stream | None = None) -> Stream:
    """Ids 0 to 5 in one binding, 6 to 8 in the next; a message is bad."""
    house.publish(orders="abc", refunds="def")
    house.publish(orders="ghi")
    writer = writer or Stream()
    writer.bad = {id_}
    house.deliver(writer)
    return writer
