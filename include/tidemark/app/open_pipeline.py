"""A declared pipeline with its connections: what commands and DAG tasks do with its log and its writers.

Everything is opened on first use and nothing is created by opening it. Decides nothing itself: the rules are
in ``delivery``, ``log`` and ``writers``.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from uuid import uuid4

from tidemark.app import replicate
from tidemark.app.consumers import difference_lines, differences_of
from tidemark.app.replicate import NextOffsets, RunPlan
from tidemark.app.shutdown import stop_requested
from tidemark.cassandra.session import connect
from tidemark.clock import wall_clock
from tidemark.connections import Connections
from tidemark.consensus import control_plane
from tidemark.consensus.lease_wait import is_of_follow
from tidemark.consensus.objects import Consensus
from tidemark.delivery.compacted_history import refusal_of
from tidemark.delivery.dead_letters.listing import LetterBox, ListedLetter
from tidemark.delivery.dead_letters.redelivery import Redelivery
from tidemark.delivery.dead_letters.store import (
    DeadLetterCopies,
    DeadLetterFiles,
    DeadLetters,
    DeadLetterTable,
)
from tidemark.delivery.operator.action_plan import ActionPlan, NotPossible
from tidemark.delivery.operator.actions import OperatorActions
from tidemark.delivery.operator.advice import Advice
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.renditions.output import FIRST
from tidemark.delivery.renditions.selection import (
    active_name,
    active_state,
    operators_name,
    outputs_of,
    resolved_name,
)
from tidemark.delivery.resume import Resumed, resume_writer
from tidemark.delivery.state.lease import LeaseLost, take
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import WriterGate, WriterState
from tidemark.delivery.status import read_advice
from tidemark.delivery.writer import Writer
from tidemark.log.state.control import LogControl
from tidemark.log.state.followed import read_followed
from tidemark.outputs.errors import UnknownRendition
from tidemark.outputs.model.consumer_name import consumer_name, split_consumer
from tidemark.pipeline.model import Pipeline, SourceStart
from tidemark.pipeline.writers import WriterDeclaration
from tidemark.writers.journal.errors import JournalUnclear
from tidemark.writers.journal.writer import JournalWriter
from tidemark.writers.kafka.dead_letter_topic import DeadLetterTopic
from tidemark.writers.renditions import (
    RenditionWriter,
    build_declared,
    build_rendition,
    declaration_of,
    load_output,
)
from tidemark.writers.replicator.hand_back import HandBack
from tidemark.writers.replicator.take_back import TakeBack
from tidemark.writers.replicator.take_over import TakeOver
from tidemark.writers.replicator.take_over_check import TakeOverCheck, check_take_over
from tidemark.writers.replicator.watch import ReplicatorWatch


@dataclass(frozen=True)
class OpenPipeline:
    """One pipeline: its state and log, its writers, an operator's actions, dead letters, runs."""

    pipeline: Pipeline
    connections: Connections
    holder: str = ""
    """The name under which this process has a writer's lease; see ``between_rounds``."""

    # State and log

    @cached_property
    def consensus(self) -> Consensus:
        """The control plane."""
        return control_plane.look_at_control(self.connections)

    @cached_property
    def positions(self) -> Positions:
        """The state of the pipeline's writers."""
        return Positions(self.consensus, self.pipeline.name)

    @property
    def _control(self) -> LogControl:
        return LogControl(self.consensus, self.pipeline.name)

    @cached_property
    def log(self) -> PublishedLog:
        """The published log as it was when it was first used here."""
        return PublishedLog.open(self._control, self.pipeline.log.path)

    # Writers. A name such as `accounts` means the active rendition, and `accounts.r2` the second one.

    def consumer(self, name: str) -> str:
        """The name of the consumer that an operator means; refuses a name that there is not."""
        writer, number = split_consumer(name)
        known = [one.name for one in self.pipeline.writers]
        if writer not in known:
            raise self._unknown(name, known)
        if number is None:
            return active_name(self.positions, writer)
        output = load_output(self.pipeline, self.consensus, writer)
        if number != FIRST and not any(one.number == number for one in (output.renditions if output else ())):
            raise UnknownRendition(self.pipeline.name, writer, number)
        return consumer_name(writer, number)

    def rendition(self, name: str) -> RenditionWriter:
        """One of the pipeline's writers with the settings of its rendition; see ``consumer``."""
        writer, number = split_consumer(self.consumer(name))
        output = load_output(self.pipeline, self.consensus, writer)
        if output is None:
            return build_declared(self.pipeline, self.connections, writer)
        rendition = output.rendition(number or FIRST)
        return build_rendition(self.pipeline, self.connections, writer, rendition)

    def writer(self, name: str) -> Writer:
        """One of the pipeline's writers; see ``consumer``."""
        return self.rendition(name).writer

    def journal(self, name: str | None = None) -> JournalWriter:
        """The active rendition of one of the pipeline's journal writers; without a name, of the only one."""
        known = self._journals
        meant = [known[name]] if name in known else list(known.values()) if name is None else []
        if not meant and name is not None and split_consumer(name)[0] in known:
            numbered = self.writer(name)
            meant = [numbered] if isinstance(numbered, JournalWriter) else []
        if len(meant) != 1:
            raise JournalUnclear(self.pipeline.name, name, tuple(known))
        return meant[0]

    def journals_of(self, keyspaces: Sequence[str]) -> list[JournalWriter]:
        """The writers of these keyspaces, as the file names them or as their active renditions have them, in
        the same order."""
        journals = self._journals
        known = {
            one.keyspace: journals[one.name] for _, one in self.pipeline.journals if one.name in journals
        }
        known |= {one.declared.keyspace: one for one in journals.values()}
        for keyspace in keyspaces:
            if keyspace not in known:
                raise JournalUnclear(self.pipeline.name, keyspace, tuple(known))
        return [known[keyspace] for keyspace in keyspaces]

    @property
    def _journals(self) -> dict[str, JournalWriter]:
        """The active renditions of the journal writers, by the writer's name."""
        built = {one.name: self.writer(one.name) for _, one in self.pipeline.journals}
        return {name: one for name, one in built.items() if isinstance(one, JournalWriter)}

    def state(self, name: str) -> WriterState | None:
        """The state of one writer, None before its first run; refuses a name that there is not."""
        return self.positions.load(self.consumer(name))

    def stopped(self) -> dict[str, WriterGate]:
        """The closed gates of the writers' active renditions, by the writer's name."""
        found = {one.name: active_state(self.positions, one.name) for one in self.pipeline.writers}
        return {name: state.gate for name, state in found.items() if state and state.gate}

    def differences(self) -> list[str]:
        """What the file says otherwise than the active renditions, one sentence for each writer."""
        outputs = outputs_of(self.consensus, self.pipeline.name, self.pipeline.writers)
        return difference_lines(self.pipeline.name, differences_of(self.pipeline, outputs))

    def advice(self, name: str) -> Advice:
        """What an operator should do about a writer's gate."""
        return read_advice(self.positions, resolved_name(self.positions, name))

    def refusal(self, name: str) -> str | None:
        """Why a writer that is not registered cannot begin; None where no reason is known."""
        below = self._control.log_head().compacted_below
        declared = (one for one in self.pipeline.writers if one.name == name)
        found = next((refusal_of(self.pipeline.name, one, below) for one in declared), None)
        return str(found) if found else None

    def _unknown(self, name: str, known: Sequence[str]) -> NotPossible:
        return NotPossible(
            self.pipeline.name, name, f"there is no such writer; there is: {', '.join(known)}."
        )

    # An operator's actions: each returns a plan, and changes nothing until the plan is executed

    @cached_property
    def _actions(self) -> OperatorActions:
        return OperatorActions(self.positions, self.log, holder=self.holder)

    @contextmanager
    def between_rounds(self, name: str, holder: str | None = None) -> "Iterator[OpenPipeline]":
        """The pipeline with one writer that no round of a follow changes until the end of the block.

        A follow changes a writer every second, so that a plan could hardly be made and executed in between.
        Waits for the round that has the writer. Without a follow nothing is taken. ``holder`` is for actions
        that take the writer themselves, under a name of their own. A stopped writer needs none of this for
        actions that leave its gate closed: rounds do not take it.
        """
        state = self.positions.load(resolved_name(self.positions, name))
        followed = read_followed(self.consensus, self.pipeline.name)
        is_followed = followed is not None and followed.is_current(wall_clock())
        if state is None or not (is_followed or (state.lease and is_of_follow(state.lease.holder))):
            yield self
            return
        # Not renewed: a renewal would be a change since the plan, and an action takes no minute.
        hold = take(self.positions, state, holder or f"operator's command {uuid4().hex[:8]}")
        try:
            yield replace(self, holder=hold.holder)
        finally:
            with suppress(LeaseLost):  # the action has given it back
                hold.release()

    def plan_acknowledge(
        self, name: str, first: int, last: int | None = None, *, untried: bool = False
    ) -> ActionPlan:
        """Pass over the messages ``first`` to ``last`` unwritten; copies go to the dead letters."""
        return self._actions.acknowledge(self.writer(name), first, last, self.dead_letters, untried=untried)

    def plan_rewind(self, name: str, position: int) -> ActionPlan:
        """Deliver everything after ``position`` again; also for a writer that is in no file any more."""
        if split_consumer(name)[0] in [writer.name for writer in self.pipeline.writers]:
            writer = self.writer(name)
            return self._actions.rewind(writer.name, position, writer)
        return self._actions.rewind(name, position)

    def plan_stop(self, name: str) -> ActionPlan:
        """Close a writer's gate."""
        return self._actions.stop(resolved_name(self.positions, name))

    def plan_open(self, name: str) -> ActionPlan:
        """Open a writer's gate."""
        return self._actions.open(resolved_name(self.positions, name))

    def plan_forget(self, name: str) -> ActionPlan:
        """Remove the state of a writer that is in no file any more."""
        return self._actions.forget(name, [writer.name for writer in self.pipeline.writers])

    # Dead letters

    @property
    def _letter_table(self) -> DeadLetterTable:
        return DeadLetterTable(lambda: connect(self.connections.control))

    @property
    def letter_box(self) -> LetterBox:
        """The stored dead letters, and what became of them."""
        files = DeadLetterFiles(self.pipeline.name, self.pipeline.log.path)
        return LetterBox(self.positions, files, self._letter_table)

    @property
    def dead_letters(self) -> DeadLetters:
        """The places that get a copy of every acknowledged message."""
        box, places = self.letter_box, list[DeadLetters]()
        if declared := self.pipeline.dead_letters:
            connection = declared.connection or self.pipeline.source.kafka.connection
            reached = self.connections.kafka_targets[connection]
            places.append(DeadLetterTopic(self.pipeline.name, declared.topic, connection, reached))
        return DeadLetterCopies(box.files, self._letter_table, *places)

    def letters(self, name: str | None = None) -> list[ListedLetter]:
        """The dead letters of one writer; without a name, of all writers that ever had some."""
        declared, box = [writer.name for writer in self.pipeline.writers], self.letter_box
        known = box.writers(declared)
        wanted = resolved_name(self.positions, name) if name else None
        if name is not None and wanted not in known and name not in known:
            raise self._unknown(name, known)
        return [letter for one in ([wanted] if wanted else known) for letter in box.letters(one)]

    def plan_redelivery(self, letter: ListedLetter) -> ActionPlan:
        """Write one dead letter after all."""
        writer = self.writer(operators_name(self.positions, letter.writer))
        return Redelivery(self.positions, self.log).plan(writer, letter)

    # Another replicator of the same tables, which are always those of a first rendition

    @property
    def _as_begun(self) -> Pipeline:
        """The pipeline with its journals as their first renditions were declared, whatever the file says."""
        first = {one.name: self._first_declared(one) for _, one in self.pipeline.journals}
        writers = tuple(first.get(one.name, one) for one in self.pipeline.writers)
        return self.pipeline.model_copy(update={"writers": writers})

    def _first_declared(self, declared: WriterDeclaration) -> WriterDeclaration:
        output = load_output(self.pipeline, self.consensus, declared.name)
        return declaration_of(self.pipeline.name, output.rendition(FIRST), declared) if output else declared

    @property
    def next_offsets(self) -> NextOffsets | None:
        """Where the first binding begins, if the pipeline continues another replicator's work."""
        if self.pipeline.source.kafka.start is not SourceStart.POINTERS:
            return None
        return TakeOver(self.pipeline, self.connections).next_offsets

    def check_take_over(self, name: str | None = None) -> TakeOverCheck:
        """What prevents a take-over of a journal's tables. Read-only."""
        declared = self.journal(name).declared
        place = (self._as_begun, declared, self.connections, self._control, self.positions)
        return check_take_over(*place)

    def plan_hand_back(self, name: str) -> ActionPlan:
        """Hand a journal's tables back to the other replicator."""
        self.writer(name)
        return HandBack(self._as_begun, self.connections, self._control, self.positions).plan(name)

    def plan_take_over(self, name: str) -> ActionPlan:
        """Take a journal's tables over again after a hand-back."""
        self.writer(name)
        return TakeBack(self._as_begun, self.connections, self._control, self.positions).plan(name)

    def refuse_replicator(self, holder: str, only: str | None = None) -> None:
        """Stop the writers, and raise, where another replicator is active on tables that were taken over."""
        watch = ReplicatorWatch(self._as_begun, self.connections, self._control, self.positions)
        watch.refuse_replicator(holder, only)

    # Runs

    def begin_run(self, run_id: str, *, retry: bool) -> RunPlan:
        """Bind new offsets, unless another replicator is active on the same tables."""
        self.refuse_replicator(run_id)
        return replicate.begin_run(
            self.pipeline, self.connections, run_id, retry=retry, next_offsets=self.next_offsets
        )

    def resume(self, name: str, holder: str, show: Callable[[str], object]) -> Resumed:
        """Resume a writer; a message that fails for the first time is tried once more."""
        writer = self.writer(name)
        self.refuse_replicator(holder, only=name)
        with stop_requested() as is_stopping, self.log.held(holder) as log:
            for _ in range(2):
                resumed = resume_writer(
                    writer,
                    log,
                    self.positions,
                    holder,
                    singly=self.pipeline.limits.resume_singly,
                    show=show,
                    is_stopping=is_stopping,
                )
                if resumed.gate is None or resumed.interrupted or resumed.gate.failures > 1:
                    break
        return resumed


def resumes_by_itself(gate: WriterGate) -> bool:
    """Whether a resume starts without an operator: after the first failure of a message or the target.

    A repeated failure waits for an operator. Each one closes the gate again, and a resume after each would
    ask the same question again.
    """
    return gate.is_about_messages and gate.failures == 1
