"""The protocol of writers: a writer puts the messages of one binding into a target.

A writer knows nothing of Spark or Airflow. A binding is cut into parts, which are written by any process, in
any order and possibly more than once. A last step runs when all parts are written; only then does the
delivery move the position. The same ``write`` serves many messages and a single one. This module is
public: writers of other packages import it.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.split_entities import Begun
from tidemark.delivery.state.earlier_pipelines import Earlier, LeftOver
from tidemark.errors import with_fields
from tidemark.log.model.binding import Binding, TopicPartition
from tidemark.log.model.manifest import LogFile

MISSED_FOR_EVER = "its target would miss those for ever"
"""Why most kinds of writers cannot begin with what compaction has left."""

Messages = TypeVar("Messages", pa.RecordBatch, pa.Table)


@dataclass(frozen=True, slots=True)
class Part:
    """The share of a binding that one task writes."""

    binding: Binding
    files: tuple[LogFile, ...]
    number: int | None = None
    """The part of the target that it is for, where the writer numbers them; None for all."""
    first_id: int = 0
    last_id: int | None = None
    """The range of ids; the default is the whole binding."""

    @property
    def ids(self) -> tuple[int, int]:
        """The first and the last id of the messages it is about."""
        last = self.binding.end if self.last_id is None else min(self.last_id, self.binding.end)
        return max(self.first_id, self.binding.base), last

    @property
    def most(self) -> int:
        """How many messages it can have at most."""
        return sum(file.most(*self.ids) for file in self.files)

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the binding is left out."""
        return self.first_id <= self.binding.base and self.last_id is None


@dataclass(frozen=True, slots=True)
class Written:
    """Counts of a part, or of several: every message is counted exactly once."""

    written: int = 0
    filtered: int = 0
    """Kept out by the writer's namespaces."""
    ignored: int = 0
    """Nothing to write for this kind of writer, dropped by a transform, acknowledged by a person, or there
    already."""
    details: Mapping[str, int] = field(default_factory=dict)
    """What only this kind of writer counts."""
    begun: tuple[Begun, ...] = ()
    """Entities that begin with this binding, where they must not do so in another Kafka partition too."""

    def __add__(self, other: "Written") -> "Written":
        names = {**self.details, **other.details}
        return Written(
            self.written + other.written,
            self.filtered + other.filtered,
            self.ignored + other.ignored,
            {name: self.details.get(name, 0) + other.details.get(name, 0) for name in names},
            self.begun + other.begun,
        )


@with_fields
class BadMessage(DeliveryError):
    """A message that the writer cannot process: the wall."""

    pipeline: str
    writer: str
    topic: str
    partition: int
    offset: int
    id: int
    problem: str

    def __str__(self) -> str:
        return (
            f"{self.pipeline}/{self.writer}: {self.topic}/{self.partition}, offset {self.offset} (id "
            f"{self.id}): {self.problem.rstrip('.')}. Look at it: tidemark log show {self.pipeline} --from "
            f"{self.id} --to {self.id} --json"
        )


@dataclass(frozen=True, slots=True)
class TargetIdentity:
    """What distinguishes a target from another one of the same name."""

    id: str
    what: str
    """For people: ``topic copy``."""
    shape: Mapping[str, Any] = field(default_factory=dict)
    """Those settings of the writer's shape that are the target's own."""


class TargetMissing(DeliveryError):
    """There is no target of this name."""


@with_fields
class TargetReplaced(DeliveryError):
    """The target is not the one that the writer wrote to."""

    needs_person = True

    pipeline: str
    writer: str
    what: str
    known: str | None
    present: str
    problem: str

    text = (
        "{pipeline}/{writer}: {what} is not the one it wrote to: {problem}. Nothing is sent to it. To send "
        "everything again it has to be empty (delete it and make it again where it is not), then: tidemark "
        "offsets rewind {pipeline} {writer} -1. Otherwise add a writer under a new name."
    )


class Check(Protocol):
    """Called before every batch of plain writes; raises when another run has taken the writer's lease."""

    def check(self) -> None:
        """Raise if another process has the lease by now."""


@dataclass(frozen=True, slots=True)
class Writing:
    """The messages of a part, and the lease under which they are written."""

    batches: Iterable[pa.RecordBatch]
    """The part's messages in id order, without those that an operator has acknowledged."""
    lease: Check


@dataclass(frozen=True, slots=True)
class Past:
    """What the control plane knows about a writer before a binding is written."""

    position: int
    reached: int
    """The highest position it ever had."""
    offsets: Mapping[TopicPartition, int]
    """The last offset bound before this binding, of those of its partitions that were bound before."""
    theirs: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The pointers that another replicator had left when its tables were taken over last."""


@dataclass(frozen=True, slots=True)
class Later:
    """The messages that a writer has finished after one that was acknowledged."""

    is_whole: bool
    """Whether the log still has all of it: compaction may have removed some."""
    batches: Callable[[], Iterable[pa.RecordBatch]]
    """The columns ``id``, ``topic``, ``key`` and ``namespace``, without other acknowledged messages."""

    def first_of(self, key: bytes | None, admits: Callable[[Mapping[str, Any]], bool]) -> int | None:
        """The first later message with the same key that the writer admits; None where there is none."""
        if key is None:
            return None
        for batch in self.batches():
            same = batch.filter(pc.equal(batch["key"], pa.scalar(key, pa.binary())))
            for message in same.to_pylist():
                if admits(message):
                    return int(message["id"])
        return None


class Writer(Protocol):
    """One writer of a pipeline: the protocol that every kind implements, built-in or of another package.

    A run calls ``identify`` and ``prepare`` once, and then for every binding ``examine``, ``cut``,
    ``write`` for every part (anywhere, in any order, more than once), ``finish`` and ``settle``; then the
    caller commits the position. Delivery is at least once: a process may be killed between any two of them,
    and all of it is done again. Instances are pickled to where their parts run, so they hold settings and
    no open connections.

    The methods from ``verifier`` on are optional: a class that inherits from ``Writer`` gets an answer that
    is safe for every target. ``docs/extending.md`` builds a writer step by step.
    """

    @property
    def name(self) -> str:
        """Its name in the pipeline file. Its state is kept under this name."""

    @property
    def shape(self) -> Mapping[str, Any]:
        """The settings that shape the output, as JSON values by name.

        Stored when the writer is registered, and compared at every run: a writer whose shape is another one
        is refused. May ask the target, so it is read only when there is something to deliver.
        """

    def prepare(self) -> None:
        """Make what the output needs, such as folders or tables, or refuse a target that lacks it.

        Called before the first binding of a run and at the beginning of a resume. Anything it raises is the
        target's fault: the gate closes over the range that waits.
        """

    def cut(self, binding: Binding, files: Sequence[LogFile]) -> list[Part]:
        """The parts of a binding, which are written independently of each other.

        ``files`` are the log's files with messages of the binding. Together the parts cover every message of
        them; where order matters, a part has to hold everything that needs it.
        """

    def write(self, part: Part, writing: Writing) -> Written:
        """Write one part: a bulk of messages, or a single one while a writer is resumed (``part.last_id``).

        ``writing.batches`` are the messages in id order, with the columns of the log; those that an
        operator has acknowledged are left out. ``writing.lease.check()`` has to be called before every
        batch of plain writes.

        Returns how many messages were written, kept out by ``namespaces`` and ignored; each is counted
        once. What is counted as written is durable when the method returns. Idempotent: writing the part
        again, after a crash at any point, changes nothing in the target.

        Raises ``BadMessage`` for the lowest message that cannot be understood, with everything below it
        written. Anything else that is raised is the target's fault; the part is tried once more before the
        gate closes.
        """

    def finish(self, part: Part, writing: Writing) -> None:
        """What comes after all parts of a binding, such as giving a file its final name.

        ``part`` is the whole binding, and ``writing`` has all its messages. Called after bulk deliveries
        and after the last single message of a resume, and before the position passes the binding's end.
        Idempotent.
        """

    def is_reachable(self) -> None:
        """Try the target in the way a delivery uses it, and leave nothing behind; raises what is wrong.

        Called again and again while a run waits for the cause of a stop to be gone.
        """

    @property
    def verifier(self) -> str | None:
        """The function that compares the output with the log, as ``package.module:function``; None for none.

        See ``tidemark.verification.outputs.reconcile.VerifyOutput`` for what it takes and returns.
        """
        return None

    @property
    def compared_after_delivery(self) -> int:
        """How much of the output is compared with the log after every delivery, in a unit of its kind; 0:
        none."""
        return 0

    def identify(self) -> TargetIdentity | None:
        """Which target there is now; asks it anew. None for a kind of target that has no id of its own.

        The id is kept with the writer's state: a target with another one stops the writer before anything is
        sent, because what was delivered is not in it.
        """
        return None

    def bound_to(self, identity: TargetIdentity) -> "Writer":
        """The same writer, which refuses to write to any other target than this one."""
        return self

    def reached(self) -> Mapping[int, int]:
        """The last id of each part of the target, where ids at or below it are not written again.

        −1 for a part that never had any; nothing of one whose past contents are unknown. Only asked of a
        target that has an id of its own.
        """
        return {}

    def refuses_left_over(self, earlier: Earlier) -> LeftOver | None:
        """What forgotten pipelines of the same name have left in this target, where it would be taken for the
        new one's output; None where nothing is in the way.

        Asked when the writer is registered. Ids begin anew with a new pipeline, so a target that skips ids
        it has seen has to answer. Not asked of a target that has an id of its own.
        """
        return None

    def keeps(self, first_id: int, last_id: int) -> str | None:
        """In words for an operator who rewinds: what of a range of ids is in the target and stays as it
        is."""
        return None

    def placing(self) -> Callable[[Mapping[str, Any]], int | None] | None:
        """The function from a message to the part of ``reached`` it goes to, None for one that is not
        written.

        None instead of a function for a target without such parts.
        """
        return None

    def examine(self, binding: Binding, past: Past) -> None:
        """Refuse a target that is not as this writer left it, by raising. Asked before a binding is cut."""
        return None

    def refuses_compacted(self, offsets: Mapping[TopicPartition, int], is_begun: bool) -> str | None:
        """Why this target cannot be given what compaction has left; None where it makes no difference.

        ``offsets`` are the last ones that compaction may have touched. ``is_begun``: the writer has been
        given some of them already and only goes on.
        """
        return MISSED_FOR_EVER

    def leaving_out(self, topics: frozenset[str]) -> "Writer | None":
        """This writer without some topics, whose names other topics had before. None for a writer that does
        not compare offsets, and so takes them all."""
        return None

    def refuses_recreated(self, places: Collection[TopicPartition]) -> str | None:
        """Why this writer may not begin with topics that were made again; None where it may."""
        return "it takes a topic that was made again like any other: use `earliest` or `latest`"

    def admits(self, topic: str) -> bool:
        """Whether it takes messages of a topic at all."""
        return True

    @property
    def named_topics(self) -> frozenset[str]:
        """The topics that its pipeline's file names, whether anything of them was ever bound or not."""
        return frozenset()

    def settle(self, binding: Binding, position: int, lease: Check) -> None:
        """Promise the target's readers everything up to a position, right before it is committed.
        Idempotent."""
        return None

    def refuses_acknowledgement(self, message: Mapping[str, Any]) -> str | None:
        """Why an operator may not let this message pass unwritten, as the rest of a sentence; None where
        they may.

        A target that has the message already, or has half applied it, has to refuse.
        """
        return None

    def discard(self, message: Mapping[str, Any]) -> None:
        """Take back what an attempt may have written of a message that an operator lets pass. Idempotent."""
        return None

    @property
    def redelivers_in_place(self) -> bool:
        """Whether a redelivered message becomes part of the regular output, as if it had never been let
        pass."""
        return False

    def refuses_redelivery(self, message: Mapping[str, Any], later: Later) -> str | None:
        """Why a message that was let pass cannot be written any more, as a sentence; None where it can.

        ``later`` is what the writer has finished with after it.
        """
        return "this kind of writer cannot write a single message out of order."

    def mark_redelivery(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """What tells a second attempt whether the first has written the message, as JSON values.

        Stored durably before ``redeliver`` is called for the first time, and given to every attempt.
        """
        return {}

    def redeliver(self, message: Mapping[str, Any], mark: Mapping[str, Any], lease: Check) -> None:
        """Write a message that was let pass, after all; doing it again with the same mark changes nothing.

        Called only where ``refuses_redelivery`` has nothing against it.
        """
        raise NotImplementedError


def admit(messages: Messages, namespaces: re.Pattern[str]) -> Messages:
    """The messages whose originating namespace the expression finds a match in."""
    if namespaces.pattern == ".*":
        return messages
    names = pc.unique(messages["namespace"]).to_pylist()
    admitted = [name for name in names if namespaces.search(name)]
    return messages.filter(pc.is_in(messages["namespace"], value_set=pa.array(admitted, pa.string())))
