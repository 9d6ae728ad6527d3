"""A pipeline opened for work on its writers: what the command line and Airflow's tasks have in common."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tidemark.app import replicate
from tidemark.app.replicate import NextOffsets, RunPlan
from tidemark.cassandra.session import connect
from tidemark.connections import Connections
from tidemark.consensus import control_plane
from tidemark.consensus.objects import Consensus
from tidemark.delivery.compacted_refusals import refusal_of
from tidemark.delivery.dead_letters.listing import LetterBox, ListedLetter
from tidemark.delivery.dead_letters.redelivery import Redelivery
from tidemark.delivery.dead_letters.store import (
    DeadLetterCopies,
    DeadLetterFiles,
    DeadLetters,
    DeadLetterTable,
)
from tidemark.delivery.operator.actions import NotPossible, Operator, Plan
from tidemark.delivery.operator.advice import Advice
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.resume import Resumed, resume_writer
from tidemark.delivery.shutdown import stop_requested
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import WriterGate, WriterState
from tidemark.delivery.status import read_advice
from tidemark.delivery.writer import Writer
from tidemark.log.state.control import LogControl
from tidemark.pipeline.model import Pipeline, SourceStart
from tidemark.writers.journal.errors import JournalUnclear
from tidemark.writers.journal.writer import JournalWriter
from tidemark.writers.kafka.dead_letter_topic import DeadLetterTopic
from tidemark.writers.registry import build_writers
from tidemark.writers.replicator.hand_back import HandBack
from tidemark.writers.replicator.take_back import TakeBack
from tidemark.writers.replicator.take_over import TakeOver
from tidemark.writers.replicator.take_over_check import TakeOverCheck, check_take_over
from tidemark.writers.replicator.watch import ReplicatorWatch


@dataclass(frozen=True)
class OpenPipeline:
    """One pipeline, its log and its writers. Nothing is created by looking."""

    pipeline: Pipeline
    connections: Connections

    @cached_property
    def consensus(self) -> Consensus:
        """The control plane."""
        return control_plane.look_at_control(self.connections)

    @cached_property
    def positions(self) -> Positions:
        """The writers' state."""
        return Positions(self.consensus, self.pipeline.name)

    @cached_property
    def log(self) -> PublishedLog:
        """The log as it is now."""
        return PublishedLog.open(LogControl(self.consensus, self.pipeline.name), self.pipeline.log.path)

    @cached_property
    def operator(self) -> Operator:
        """What a person may do."""
        return Operator(self.positions, self.log)

    @property
    def dead_letters(self) -> DeadLetters:
        """Where copies of acknowledged messages go."""
        box, places = self.letter_box, list[DeadLetters]()
        if declared := self.pipeline.dead_letters:
            connection = declared.connection or self.pipeline.source.kafka.connection
            reached = self.connections.kafka_targets[connection]
            places.append(DeadLetterTopic(self.pipeline.name, declared.topic, connection, reached))
        return DeadLetterCopies(box.files, self._letter_table, *places)

    @property
    def letter_box(self) -> LetterBox:
        """The copies that are there, and what became of them."""
        files = DeadLetterFiles(self.pipeline.name, self.pipeline.log.path)
        return LetterBox(self.positions, files, self._letter_table)

    @property
    def _letter_table(self) -> DeadLetterTable:
        return DeadLetterTable(lambda: connect(self.connections.control))

    def letters(self, name: str | None = None) -> list[ListedLetter]:
        """The dead letters of one writer, or of all that ever had some."""
        declared, box = [writer.name for writer in self.pipeline.writers], self.letter_box
        known = box.writers(declared)
        if name is not None and name not in known:
            problem = f"there is no such writer; there is: {', '.join(known)}."
            raise NotPossible(self.pipeline.name, name, problem)
        return [letter for one in ([name] if name else known) for letter in box.letters(one)]

    def plan_redelivery(self, letter: ListedLetter) -> Plan:
        """What putting one dead letter through its writer would do."""
        return Redelivery(self.positions, self.log).plan(self.writer(letter.writer), letter)

    def advice(self, name: str) -> Advice:
        """What to do about a writer's gate."""
        return read_advice(self.positions, name)

    @property
    def next_offsets(self) -> NextOffsets | None:
        """Where the pipeline begins, if it continues somebody else's work."""
        if self.pipeline.source.kafka.start is not SourceStart.POINTERS:
            return None
        return TakeOver(self.pipeline, self.connections).next_offsets

    def plan_hand_back(self, name: str) -> Plan:
        """What giving a journal's tables back would do."""
        self.writer(name)
        return HandBack(self.pipeline, self.connections, self._control, self.positions).plan(name)

    def plan_take_over(self, name: str) -> Plan:
        """What taking a journal's tables over again would do."""
        self.writer(name)
        return TakeBack(self.pipeline, self.connections, self._control, self.positions).plan(name)

    def check_take_over(self, name: str | None = None) -> TakeOverCheck:
        """What is in the way of a take-over; looks, and changes nothing."""
        declared = self.journal(name).declared
        place = (self.pipeline, declared, self.connections, self._control, self.positions)
        return check_take_over(*place)

    def refuse_replicator(self, holder: str, only: str | None = None) -> None:
        """Stop and refuse to go on where another replicator is at work on tables that were taken over."""
        watch = ReplicatorWatch(self.pipeline, self.connections, self._control, self.positions)
        watch.refuse_replicator(holder, only)

    def begin_run(self, run_id: str, *, retry: bool) -> RunPlan:
        """Bind what is new, unless another replicator is at work on the same tables."""
        self.refuse_replicator(run_id)
        return replicate.begin_run(
            self.pipeline, self.connections, run_id, retry=retry, next_offsets=self.next_offsets
        )

    @property
    def _control(self) -> LogControl:
        return LogControl(self.consensus, self.pipeline.name)

    def writer(self, name: str) -> Writer:
        """One of the pipeline's writers."""
        for writer in self._writers:
            if writer.name == name:
                return writer
        known = ", ".join(writer.name for writer in self.pipeline.writers)
        raise NotPossible(self.pipeline.name, name, f"there is no such writer; there is: {known}.")

    def journal(self, name: str | None = None) -> JournalWriter:
        """One of the pipeline's journal writers; the only one where none is named."""
        known = {one.name: one for one in self._writers if isinstance(one, JournalWriter)}
        meant = [known[name]] if name in known else list(known.values()) if name is None else []
        if len(meant) != 1:
            raise JournalUnclear(self.pipeline.name, name, tuple(known))
        return meant[0]

    def journals_of(self, keyspaces: Sequence[str]) -> list[JournalWriter]:
        """The writers of these keyspaces, in their order."""
        known = {one.declared.keyspace: one for one in self._writers if isinstance(one, JournalWriter)}
        for keyspace in keyspaces:
            if keyspace not in known:
                raise JournalUnclear(self.pipeline.name, keyspace, tuple(known))
        return [known[keyspace] for keyspace in keyspaces]

    @property
    def _writers(self) -> list[Writer]:
        return build_writers(self.pipeline, self.connections)

    def stopped(self) -> dict[str, WriterGate]:
        """The writers of the file whose gates are closed."""
        states = [self.positions.load(writer.name) for writer in self.pipeline.writers]
        return {state.name: state.gate for state in states if state and state.gate}

    def refusal(self, name: str) -> str | None:
        """Why a writer of the file that is not registered cannot begin; None where nothing is known."""
        below = self._control.log_head().compacted_below
        declared = (one for one in self.pipeline.writers if one.name == name)
        found = next((refusal_of(self.pipeline.name, one, below) for one in declared), None)
        return str(found) if found else None

    def state(self, name: str) -> WriterState | None:
        """One writer's state; refuses a name that the file does not have."""
        self.writer(name)
        return self.positions.load(name)

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

    def plan(self, action: str, name: str, **options: Any) -> Plan:
        """What one of a person's actions would do."""
        match action:
            case "acknowledge":
                writer = self.writer(name)
                ids, untried = (options["first"], options.get("last")), options.get("untried", False)
                return self.operator.acknowledge(writer, *ids, self.dead_letters, untried=untried)
            case "rewind":
                declared = {writer.name: writer for writer in self._writers}
                return self.operator.rewind(name, options["position"], declared.get(name))
            case "stop":
                return self.operator.stop(name)
            case "open":
                return self.operator.open(name)
            case _:
                return self.operator.forget(name, [writer.name for writer in self.pipeline.writers])


def resumes_by_itself(gate: WriterGate) -> bool:
    """Whether a resume is started without a person: once, where messages or their target closed the gate.

    What has failed again waits for a person: every further failure closes the gate anew, and each of those
    would start another resume that asks them the same.
    """
    return gate.is_about_messages and gate.failures == 1
