"""The protocol of writers: a writer puts the messages of the log into one target.

A writer knows nothing of Spark or Airflow. Each binding is cut into parts, which are written by any process,
in any order and possibly more than once. A last step runs when all parts are written; only then does the
delivery move the position. The same ``write`` serves a whole part in bulk and a single message while a writer
is resumed. This module is public: writers of other packages import everything they need from here.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.state.earlier_pipelines import Earlier, LeftOver
from tidemark.delivery.writing import Check, Later, Part, Past, TimedOutput, Writing, Written, admit
from tidemark.errors import with_fields
from tidemark.log.model.binding import Binding, TopicPartition
from tidemark.log.model.manifest import JOURNAL, LogFile

__all__ = [
    "MISSED_FOR_EVER",
    "BadMessage",
    "Check",
    "Earlier",
    "Later",
    "LeftOver",
    "Part",
    "Past",
    "TargetIdentity",
    "TargetMissing",
    "TargetReplaced",
    "TimedOutput",
    "Writer",
    "Writing",
    "Written",
    "admit",
]

MISSED_FOR_EVER = "its target would miss those for ever"
"""Why most kinds of writers cannot begin with a compacted log."""


@with_fields
class BadMessage(DeliveryError):
    """A message that the writer cannot process. The position stops right before it."""

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
    """What distinguishes a target from another one of the same name.

    Attributes:
        id: The target's own id, such as Kafka's topic id.
        what: The target, for error texts: ``topic copy``.
        shape: Those settings of the writer's ``shape`` that belong to the target, such as its number of
            partitions.
    """

    id: str
    what: str
    shape: Mapping[str, Any] = field(default_factory=dict)


class TargetMissing(DeliveryError):
    """The target does not exist."""


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


class Writer(Protocol):
    """One writer of a pipeline: the protocol that every kind implements, built-in or of another package.

    The order of calls. A run calls ``identify``, ``bound_to`` and ``prepare`` once; the calls that follow go
    to what ``bound_to`` returned. Then for every binding: ``examine``, ``cut``, ``write`` for every part,
    ``finish``, ``settle``; then the delivery commits the position. A resume makes the same calls, except that
    ``cut`` is left out and ``write`` gets one message at a time.

    Delivery is at least once. A process may be killed between any two calls, and inside each of them; the
    next run then repeats the binding from ``examine`` on. Parts of one binding are written concurrently, in
    several processes. Instances are pickled to those processes, so they hold settings and no open
    connections.

    Errors. ``BadMessage`` stops the writer at exactly that message, and ``TargetReplaced`` until an operator
    rewinds. Any other exception counts as a failure of the target: the step is retried once, then the gate
    closes over the range of ids. An exception that ``writing.lease.check()`` raises must not be caught.

    ``name``, ``shape``, ``prepare``, ``cut``, ``write``, ``finish`` and ``is_reachable`` are required. The
    methods from ``verifier`` on are optional: a class that inherits from ``Writer`` gets an implementation
    that is safe for every target. ``docs/extending.md`` builds a writer step by step.
    """

    @property
    def name(self) -> str:
        """The writer's name in the pipeline file. Its state is stored under this name."""

    @property
    def shape(self) -> Mapping[str, Any]:
        """The settings that determine the output, as JSON values by name.

        Stored when the consumer is registered, and compared at every run: one whose shape is another is
        refused, because old and new output would mix. A rendition is built with the settings that it was
        declared with, so a change of the file changes no shape. May query the target: it is read only when
        there is something to deliver.
        """

    @property
    def declared_shape(self) -> Mapping[str, Any]:
        """The part of ``shape`` that follows from the declaration alone. Must not query the target.

        The settings of a rendition have it, and renditions have targets of their own.
        """
        return self.shape

    def prepare(self) -> None:
        """Create what the output needs, such as folders or tables, or raise where the target lacks it.

        Called before the first binding of a run and at the beginning of a resume. Idempotent.
        """

    def cut(self, binding: Binding, files: Sequence[LogFile]) -> list[Part]:
        """The parts of a binding, each of which is written on its own.

        Args:
            binding: The binding to deliver.
            files: The log's files that may hold messages of the binding.

        Returns:
            Parts that together cover every message of the files. Messages whose order matters to the target
            belong to one part. The same binding may be cut differently by another run.
        """

    def write(self, part: Part, writing: Writing) -> Written:
        """Write one part: all its messages, or a single one while the writer is resumed.

        Idempotent: writing the part again, after a crash at any point, changes nothing in the target. The
        result depends on the messages alone, never on a clock or on chance.

        Args:
            part: What to write. A single message has ``part.first_id == part.last_id``.
            writing: The messages in id order with the columns of the log, and the lease.
                ``writing.lease.check()`` has to be called before every batch that the target itself does not
                fence; it raises when another process has taken the lease over.

        Returns:
            How many messages were written, filtered out by ``namespaces`` and ignored; each message is
                counted
            once. What is counted as written is durable when the method returns: the position is committed
            next, and compaction may remove what every position has passed.

        Raises:
            BadMessage: For the lowest message that cannot be processed, after everything below it is written.
        """

    def finish(self, part: Part, writing: Writing) -> None:
        """Complete a binding whose parts are all written, such as by giving a file its final name.

        Called once per binding, after bulk deliveries and after the last single message of a resume, before
        the position passes the end of the binding. Idempotent.

        Args:
            part: The whole binding.
            writing: All its messages, and the lease.

        Raises:
            BadMessage: Where only the whole binding shows that a message cannot be processed.
        """

    def is_reachable(self) -> None:
        """Try the target in the way a delivery uses it, and leave nothing behind; raises the failure.

        Called repeatedly while a resume waits for a failed target to recover.
        """

    # Optional: comparing the output with the log

    @property
    def verifier(self) -> str | None:
        """The function that compares the output with the log, as ``package.module:function``; None for none.

        ``tidemark.verification.outputs.reconcile.VerifyOutput`` describes its parameters and its result.
        """
        return None

    @property
    def compared_after_delivery(self) -> int:
        """How much of the output is compared with the log after every delivery, in a unit of the kind's own,
        such as files or offsets. 0 for nothing."""
        return 0

    @property
    def compared_by(self) -> str | None:
        """The function that compares two renditions of the writer, as ``package.module:function``; None where
        they cannot be compared.

        ``tidemark.verification.renditions.comparison.Compare`` describes its parameter and its result.
        """
        return None

    # Optional: work that nothing waits for

    def beside(self) -> "Writer":
        """A copy of this writer that delays other work at the target less: for a rendition that no reader
        uses yet."""
        return self

    # Optional: an output that can be read as of any time

    def timed_output(self) -> TimedOutput | None:
        """The output as readers know it; None for kinds whose output has no times.

        Readers may read a time as soon as its binding is finished, so from then on its rows never change.
        ``Written.digests`` of a binding are committed with the position that finishes it. Where a binding is
        delivered again, they are computed first by ``trial``; where they differ nothing is written, and the
        rendition is frozen. Must not query the target.
        """
        return None

    def trial(self) -> "Writer":
        """A copy of this writer whose ``write`` computes the digests, and writes nothing.

        It may read what earlier messages have left in the target, and nothing else of it. Called only where
        ``timed_output`` returns something.
        """
        raise TypeError(f"{self.name} has no digests to compute")

    # Optional: a target that can be replaced under the same name

    def create_target(self) -> None:
        """Create a target that ``identify`` has an id of, where it is missing; raises where it is not empty.

        Called before ``identify`` when the writer is registered, and after a rewind to the beginning: then
        nothing is expected in it. A target that is missing at any other time stays missing, and stops the
        writer.
        """
        return None

    def identify(self) -> TargetIdentity | None:
        """The identity of the target as it is now; reads it anew. None for targets that have no id.

        The id is stored with the writer's state. A target with another id stops the writer before anything is
        sent, because what was delivered is not in it. Raises ``TargetMissing`` where there is no target.
        """
        return None

    def bound_to(self, identity: TargetIdentity) -> "Writer":
        """A copy of this writer that raises ``TargetReplaced`` instead of writing to another target."""
        return self

    def reached(self) -> Mapping[int, int]:
        """The last id in each part of the target, by the part's number; −1 for an empty part.

        For targets that skip ids at or below the last one. A part whose past contents are unknown is left
        out. Called only where ``identify`` returns an identity.
        """
        return {}

    def placing(self) -> Callable[[Mapping[str, Any]], int | None] | None:
        """The function from a message to the number of the part of ``reached`` that it is written to.

        The function returns None for a message that is not written. None instead of a function for a target
        without such parts.
        """
        return None

    def keeps(self, first_id: int, last_id: int) -> str | None:
        """For the plan of a rewind: one line about what the target has of a range of ids and keeps unchanged;
        None where there is nothing to say."""
        return None

    # Optional: refusing a target or a part of the log

    def examine(self, binding: Binding, past: Past) -> None:
        """Check that the target is as this writer left it; raises where it is not.

        Called before a binding is cut. ``past`` is what the control plane has recorded about this writer.
        """
        return None

    def refuses_left_over(self, earlier: Earlier) -> LeftOver | None:
        """The output of a forgotten pipeline of the same name that would be mistaken for the new one's; None
        where there is none.

        Called when the writer is registered. Ids begin at 0 again with a new pipeline, so a target that skips
        ids it has seen has to check. Not called where ``identify`` returns an identity.
        """
        return None

    def refuses_rendition(self) -> str | None:
        """Why the target is no place for a new rendition: it has output already; None where it has none.

        Called when a rendition after the first is registered, whose output must be its own alone. Targets
        with an identity are checked by ``reached``. The text is a clause: "keyspace … is not empty".
        """
        return None

    @property
    def whole_after(self) -> frozenset[str]:
        """The compaction policies after which the messages that are left give an empty target the same state
        as all of them. ``refuses_compacted`` is called where no other policy was applied."""
        return frozenset({JOURNAL})

    def refuses_compacted(self, offsets: Mapping[TopicPartition, int], is_begun: bool) -> str | None:
        """Why this target must not get a history from which compaction has removed messages; None where it
        may.

        Args:
            offsets: The last offset of every partition that compaction may have removed messages up to; empty
                where ``is_begun``.
            is_begun: Whether the writer has got a part of that history before and continues.

        Returns:
            A clause that continues the sentence "… the log does not have every message, and …".
        """
        return MISSED_FOR_EVER

    # Optional: topics that were deleted and recreated

    def leaving_out(self, topics: frozenset[str]) -> "Writer | None":
        """A copy of this writer that skips some topics, because its target holds older topics of these names.

        None for a writer whose target does not compare offsets: it takes the messages of all topics.
        """
        return None

    def refuses_recreated(self, places: Collection[TopicPartition]) -> str | None:
        """Why this writer may not begin with recreated topics (``start: recreated``); None where it may.

        ``places`` are all partitions that were bound and that the writer admits. The text continues the
        sentence "`start: recreated` is refused, because …".
        """
        return "it takes a topic that was made again like any other: use `earliest` or `latest`"

    def admits(self, topic: str) -> bool:
        """Whether the writer takes messages of a topic."""
        return True

    def since_recreation(self, first_ids: Mapping[str, int]) -> "Writer | None":
        """A copy of this writer for bindings of recreated topics: it compares their messages with none of the
        topics that had the same names before.

        ``first_ids`` has the first id of each of these topics. None for a writer that compares the messages
        of a topic with no earlier ones.
        """
        return None

    @property
    def named_topics(self) -> frozenset[str]:
        """The topics that the pipeline's file names, whether they were ever bound or not."""
        return frozenset()

    # Optional: positions that the target publishes itself

    def settle(self, binding: Binding, position: int, lease: Check) -> None:
        """Publish a position to the target's readers: everything up to it is there.

        Called right before the position is committed: at the end of a binding, and during a resume for a
        position inside it. Raises where the target cannot guarantee it. Idempotent.
        """
        return None

    # Optional: acknowledged messages and dead letters

    def refuses_acknowledgement(self, message: Mapping[str, Any]) -> str | None:
        """Why an operator may not acknowledge this message without writing it; None where they may.

        A target that has the message already, or has applied a part of it, has to refuse. The text continues
        the sentence "id … cannot be acknowledged: …".
        """
        return None

    def discard(self, message: Mapping[str, Any]) -> None:
        """Remove what failed attempts may have written of a message that is acknowledged. Idempotent."""
        return None

    @property
    def redelivers_in_place(self) -> bool:
        """Whether a redelivered message becomes part of the regular output, as if it had never been
        acknowledged. False where it is written beside it."""
        return False

    def refuses_redelivery(self, message: Mapping[str, Any], later: Later) -> str | None:
        """Why an acknowledged message cannot be written any more; None where it can.

        ``later`` has the messages that the writer has finished after it. The text continues the sentence
        "id … cannot be redelivered: …".
        """
        return "this kind of writer cannot write a single message out of order."

    def mark_redelivery(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a retry needs to find out whether an earlier attempt has written the message, as JSON values.

        Stored durably before ``redeliver`` is called for the first time, and passed to every attempt.
        """
        return {}

    def redeliver(self, message: Mapping[str, Any], mark: Mapping[str, Any], lease: Check) -> None:
        """Write a message that was acknowledged before. Idempotent for the same ``mark``.

        Called only where ``refuses_redelivery`` returned None.
        """
        raise TypeError(f"{self.name} redelivers nothing")
