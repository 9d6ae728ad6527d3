"""Forget a pipeline that no file declares any more: remove its control state and, if asked, its log.

A plan first; an operator carries it out with a reason. The order keeps an interrupted removal visible: the
log is marked, so that nothing is added and its gate shows as closed; then writers, dead letters, bindings and
the log's files are removed; the log object with the mark is removed last. After a crash the mark is still
there, and the same command continues.

What it refuses to do: change a pipeline that a file declares; remove what a process holds; remove a folder
that is not known to be this log, or that another pipeline uses. Outputs (tables, folders, topics) stay.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tidemark.cassandra.driver import Session
from tidemark.clock import Clock, wall_clock
from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.lease import Lease
from tidemark.consensus.lightweight import KEYSPACE
from tidemark.consensus.objects import Consensus, ObjectKind
from tidemark.consensus.update import retry_outpaced
from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.renditions.output import forget_output
from tidemark.delivery.state.known_pipelines import NotKnown, is_known, known_pipelines, known_writers
from tidemark.delivery.state.lease import LeaseHeld
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import FORGET_PIPELINE, WriterState
from tidemark.errors import with_fields
from tidemark.faults import FaultPoint, reach
from tidemark.log.files.removal import LogFiles, count_files, find_log, remove_files
from tidemark.log.state.control import LogControl
from tidemark.log.state.followed import forget_followed
from tidemark.log.state.forgotten import (
    FORGET,
    Forgetting,
    begin_forgetting,
    end_forgetting,
    read_mark,
    refuse_readers,
    source_topics,
)
from tidemark.log.state.lease import LEASE_ROW, refuse_while_held
from tidemark.pipeline import checks
from tidemark.pipeline.loader import LoadedPipelines


@with_fields
class StillDeclared(DeliveryError):
    """A file still declares the pipeline."""

    pipeline: str
    file: str

    text = (
        "{pipeline}: {file} declares it. Nothing was changed. Remove the file first; to forget one of its "
        "writers, take that out of the file and run: tidemark offsets forget {pipeline} WRITER"
    )


@with_fields
class FolderShared(DeliveryError):
    """Another pipeline has its files in the folder of this log."""

    pipeline: str
    root: str
    other: str

    text = (
        "{pipeline}: its log lies in {root}, which pipeline {other} uses too. Nothing was changed. Leave out "
        "--log: the files belong to the other one now."
    )


@with_fields
class TakenMeanwhile(DeliveryError):
    """A process took a writer's lease after the removal had begun."""

    needs_person = True

    pipeline: str
    writer: str
    lease: Lease

    text = (
        "{pipeline}/{writer}: {lease.holder} took this writer while the pipeline was being forgotten, and "
        "has it until {lease.until} at least. Other parts may be gone already. Stop it, and run the same "
        "command again: it goes on where it stopped."
    )


class Letters(Protocol):
    """The copies of acknowledged messages in the control plane's keyspace."""

    def count(self, pipeline: str, writers: Collection[str]) -> int:
        """How many there are."""

    def remove(self, pipeline: str, writers: Collection[str]) -> None:
        """Remove them. Idempotent."""


class LetterTableCleanup:
    """The letters in the table ``dead_letter``."""

    def __init__(self, connect: Callable[[], Session], keyspace: str = KEYSPACE) -> None:
        self._connect, self._keyspace = connect, keyspace

    def count(self, pipeline: str, writers: Collection[str]) -> int:
        """See ``Letters.count``."""
        return sum(self._execute("SELECT count(*) FROM", pipeline, name) for name in writers)

    def remove(self, pipeline: str, writers: Collection[str]) -> None:
        """See ``Letters.remove``."""
        for name in writers:
            self._execute("DELETE FROM", pipeline, name)

    def _execute(self, what: str, pipeline: str, writer: str) -> int:
        session = self._connect()
        keyspace = session.cluster.metadata.keyspaces.get(self._keyspace)
        if keyspace is None or "dead_letter" not in keyspace.tables:
            return 0  # the table is created with the first letter
        statement = f"{what} {self._keyspace}.dead_letter WHERE pipeline = %s AND writer = %s"
        found = session.execute(statement, (pipeline, writer)).one()
        return int(found[0]) if found else 0


def refuse_declared(pipeline: str, loaded: LoadedPipelines) -> None:
    """Raise ``StillDeclared`` for a pipeline that has a file, including a file that is refused."""
    for file, one in zip(loaded.files, loaded.pipelines, strict=True):
        if one.name == pipeline:
            raise StillDeclared(pipeline, str(file))
    for refusal in loaded.refused:
        if pipeline in (refusal.name, refusal.file.stem):
            raise StillDeclared(pipeline, str(refusal.file))


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """The plan of forgetting a pipeline.

    Attributes:
        pipeline: The pipeline's name.
        lines: What is removed and what stays, one line each, for output.
        details: The same, for ``--json``.
        execute: Carries the plan out, with the operator's audit entry.
    """

    pipeline: str
    lines: tuple[str, ...]
    details: Mapping[str, Any]
    execute: Callable[[AuditEntry], None] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The form of ``--json``."""
        return {"action": "forget", "pipeline": self.pipeline, "plan": list(self.lines), **self.details}


@dataclass(frozen=True)
class PipelineForgetting:
    """The removal of one pipeline that no file declares.

    Attributes:
        consensus: The control plane.
        pipeline: The pipeline's name.
        letters: Its dead letters in the control plane.
        locations: The folders of declared pipelines, by name: nothing is removed from them.
        clock: The time of leases.
    """

    consensus: Consensus
    pipeline: str
    letters: Letters
    locations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    clock: Clock = wall_clock

    @property
    def _control(self) -> LogControl:
        return LogControl(self.consensus, self.pipeline)

    @property
    def _positions(self) -> Positions:
        return Positions(self.consensus, self.pipeline)

    def plan(self, *, with_log: bool = False, log_path: str | None = None) -> ForgetPlan:
        """What would be removed, and what would stay. Read-only."""
        control = self._control
        if not is_known(self.consensus, self.pipeline):
            raise NotKnown(self.pipeline, known_pipelines(self.consensus))
        begun = read_mark(control)
        root = self._root(begun, with_log, log_path)
        states = self._states()
        self._refuse_held(states, reading=root is not None)
        names = sorted({*control.writer_names(), *known_writers(control, self._positions)})
        files = count_files(self.pipeline, root) if root else None
        letters = self.letters.count(self.pipeline, names)

        def execute(deed: AuditEntry) -> None:
            self._execute(deed, root, names)

        lines = self._lines(begun, states, letters, files)
        details = {
            "writers": [state.name for state in states],
            "end": control.log_head().end,
            "dead_letters": letters,
            "log": root,
            "files": files.files if files else 0,
            "bytes": files.bytes if files else 0,
            "begun": begun is not None,
        }
        return ForgetPlan(self.pipeline, tuple(lines), details, execute)

    def _root(self, begun: Forgetting | None, with_log: bool, log_path: str | None) -> str | None:
        """The folder to remove; an interrupted removal keeps its decision. None for none."""
        if begun is not None and begun.root is not None:
            return None if self._other_user(begun.root) else begun.root
        if not with_log:
            return None
        root = find_log(self.pipeline, self._control.log_head(), log_path)
        if other := self._other_user(root):
            raise FolderShared(self.pipeline, root, other)
        return root

    def _other_user(self, root: str) -> str | None:
        """The name of another pipeline that has its files in this folder; None where there is none."""
        for other, places in self._places_of_others():
            if any(checks.overlap(root, place) for place in places):
                return other
        return None

    def _places_of_others(self) -> list[tuple[str, Sequence[str]]]:
        others = [name for name in known_pipelines(self.consensus) if name != self.pipeline]
        roots = {name: LogControl(self.consensus, name).log_head().root for name in others}
        logs = [(name, [root]) for name, root in roots.items() if root is not None]
        return [*self.locations.items(), *logs]

    def _states(self) -> list[WriterState]:
        found = (self._positions.load(name) for name in known_writers(self._control, self._positions))
        return [state for state in found if state is not None]

    def _refuse_held(self, states: Sequence[WriterState], *, reading: bool) -> None:
        now, rows = self.clock(), self._control.read_log_rows([LEASE_ROW])
        refuse_while_held(self.pipeline, rows, now, "forgetting the pipeline is refused")
        for state in states:
            if lease := state.held_at(now):
                raise LeaseHeld(self.pipeline, state.name, lease)
        if reading:
            refuse_readers(self._control, now)

    def _lines(
        self, begun: Forgetting | None, states: Sequence[WriterState], letters: int, files: LogFiles | None
    ) -> list[str]:
        head, bindings = self._control.log_head(), self._control.bindings_head()
        lines = [f"goes on with what {begun.who} began ({begun.reason})"] if begun else []
        lines += [
            f"writer {one.name}: position {one.position}, gate and offset log are removed; its output stays"
            for one in states
        ]
        if bindings.reached:
            topics = ", ".join(sorted({topic for topic, _ in bindings.reached}))
            lines.append(f"bindings of {topics} are removed: a new pipeline of this name begins anew")
        if bindings.newest is not None and bindings.newest > head.t:
            lines.append("a binding waits to be published: a run of it that is still going on fails")
        if letters:
            lines.append(f"{letters} dead letters are removed from the control plane")
        if files is None:
            where = f" in {head.root}" if head.root else ""
            if head.manifest is not None:
                lines.append(
                    f"the log's files{where} stay ({head.count} messages, ids to {head.end}): a new pipeline "
                    "needs another log.path. Remove them too with --log"
                )
        else:
            lines.append(f"the log is removed: {files.files} files, {files.bytes} bytes in {files.root}")
            if files.others:
                lines.append(f"not the log's, stays in {files.root}: {', '.join(files.others)}")
        return lines

    def _execute(self, deed: AuditEntry, root: str | None, names: Sequence[str]) -> None:
        control, positions = self._control, self._positions
        self._refuse_held(self._states(), reading=root is not None)
        begun = Forgetting(deed.who, deed.reason, deed.at, root, source_topics(control))
        mark = begin_forgetting(control, begun)
        reach(FaultPoint.PIPELINE_MARKED)
        for writer in self.consensus.names(ObjectKind.OUTPUT, f"{self.pipeline}/"):
            forget_output(self.consensus, self.pipeline, writer.partition("/")[2])
        for state in self._states():
            self._forget_writer(positions, state, deed)
            reach(FaultPoint.PIPELINE_WRITER_FORGOTTEN)
        self.letters.remove(self.pipeline, names)
        reach(FaultPoint.PIPELINE_LETTERS_REMOVED)
        forget_followed(self.consensus, self.pipeline)
        control.forget_bindings()
        reach(FaultPoint.PIPELINE_BINDINGS_FORGOTTEN)
        folder = None if mark.root is None or self._other_user(mark.root) else mark.root
        if folder is not None:
            remove_files(self.pipeline, folder)
            reach(FaultPoint.PIPELINE_FILES_REMOVED)
        what = f"with the log's files in {folder}" if folder else "without the log's files"
        end_forgetting(control, replace(deed, what=FORGET, about=what), mark.topic_ids)
        reach(FaultPoint.PIPELINE_FORGOTTEN)

    def _forget_writer(self, positions: Positions, state: WriterState, deed: AuditEntry) -> None:
        def attempt(found: WriterState | None) -> None:
            if found is None:
                return
            if lease := found.held_at(self.clock()):
                raise TakenMeanwhile(self.pipeline, state.name, lease)
            positions.forget(found, replace(deed, what=FORGET_PIPELINE))

        retry_outpaced(lambda: positions.load(state.name), attempt)
