"""Delivery from a compacted log: which writers may get its messages, and which are refused.

A compacted log is not the whole history. A journal can be rebuilt from it where only the policy `journal` was
ever applied: replaying the remaining messages into empty tables gives every entity its present state. Tables
that are past the compacted part lose nothing either, because they skip messages that they already have. Any
other writer would get a history with gaps that cannot be detected afterwards, so it is refused.
"""

from collections.abc import Iterable, Mapping

from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.writer import MISSED_FOR_EVER, Writer
from tidemark.errors import with_fields
from tidemark.log.model.binding import TopicPartition
from tidemark.pipeline.model import AnyWriter, WriterStart

DIGESTS_STAY = (
    "the digests of what was delivered from there are those of all messages, so the rows could not be "
    "compared before they are written again"
)
BEGIN_ANEW = (
    "Give it `start: latest`; a journal needs an empty keyspace of its own, and a log that was compacted by "
    "policy `journal` alone. A collection that needs every message cannot begin any more."
)


@with_fields
class HistoryCompacted(DeliveryError):
    """A delivery would begin in the compacted part of the log, where messages may be missing."""

    needs_person = True

    pipeline: str
    writer: str
    first_id: int
    compacted_below: int
    problem: str
    way: str

    text = (
        "{pipeline}/{writer}: the log is compacted below id {compacted_below}, so from id {first_id} on it "
        "does not have every message, and {problem}. Nothing was delivered or changed. {way}"
    )


def require_history(
    writer: Writer | None,
    name: str,
    log: PublishedLog,
    first_id: int,
    way: str,
    *,
    is_begun: bool = False,
    is_new: bool = False,
) -> None:
    """Raise ``HistoryCompacted`` where the log is incomplete from ``first_id`` on and the target needs all of
    it.

    ``writer`` is None where the pipeline's file does not declare it any more. ``way`` is the advice at the
    end of the error. ``is_begun`` is for a writer that this rule has admitted before and that continues,
    ``is_new`` for one that is being registered; otherwise something is to be delivered again.
    """
    below = log.manifest.compacted_below
    if first_id >= below:
        return
    if writer is None:
        problem: str | None = "the pipeline's file does not have the writer any more"
    elif not log.manifest.policies or not writer.whole_after.issuperset(log.manifest.policies):
        policies = ", ".join(log.manifest.policies) or "unknown"
        usual = " or ".join(f"`{one}`" for one in sorted(writer.whole_after))
        problem = f"it was compacted by another policy than {usual} ({policies})"
    elif not is_new and not is_begun and writer.timed_output() is not None:
        problem = DIGESTS_STAY
    else:
        problem = writer.refuses_compacted({} if is_begun else _offsets_below(log, below), is_begun)
    if problem:
        raise HistoryCompacted(log.manifest.pipeline, name, first_id, below, problem, way)


def _offsets_below(log: PublishedLog, below: int) -> Mapping[TopicPartition, int]:
    """The last offset of every partition among the ids below ``below``."""
    found: dict[TopicPartition, int] = {}
    for binding in log.bindings.every():
        if binding.base >= below or binding.t > log.manifest.t:
            break
        found |= binding.offsets_at(below - 1)
    return found


def refusal_of(pipeline: str, declared: AnyWriter, compacted_below: int) -> HistoryCompacted | None:
    """The error for a writer that is not registered and cannot begin; None where its declaration allows it.

    The same rule as ``require_history``, without the target and the log's files: for commands that show
    state, and for compaction, which would otherwise wait for ever for a writer that can never begin. A
    journal is not judged here: whether it may begin depends on the contents of its keyspace.
    """
    is_whole = compacted_below <= 0
    if is_whole or not declared.needs_every_message or declared.start is WriterStart.LATEST:
        return None
    return HistoryCompacted(pipeline, declared.name, 0, compacted_below, MISSED_FOR_EVER, BEGIN_ANEW)


def needing_every_message(declared: Iterable[AnyWriter]) -> tuple[str, ...]:
    """The names of the writers that a compacted log refuses."""
    return tuple(one.name for one in declared if refusal_of("", one, compacted_below=1))
