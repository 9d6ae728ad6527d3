"""Delivery from a compacted log: who may have messages from below what is compacted, and who is refused.

What compaction has left is not the history any more. A journal can be rebuilt from it, where only the policy
`journal` was ever at work: then replaying what is left into empty tables gives every entity the state it has.
Tables that are past all of it already lose nothing either, because they drop what they have. Everybody else
would get a history with holes that nobody could see afterwards. A partial history is never offered.
"""

from collections.abc import Mapping

from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.writer import Writer
from tidemark.errors import with_fields
from tidemark.log.model.binding import TopicPartition


@with_fields
class HistoryCompacted(DeliveryError):
    """Messages are to be delivered of which compaction may have taken some away."""

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
    writer: Writer | None, name: str, log: PublishedLog, first_id: int, way: str, *, is_begun: bool = False
) -> None:
    """Refuse to deliver from an id on what is not there whole, unless it makes no difference to the target.

    ``is_begun`` is for a writer that was let begin by this rule already, and goes on. No writer at all is one
    that the pipeline's file does not have any more.
    """
    below = log.manifest.compacted_below
    if first_id >= below:
        return
    if writer is None:
        problem: str | None = "the pipeline's file does not have the writer any more"
    elif not log.manifest.keeps_state:
        policies = ", ".join(log.manifest.policies) or "unknown"
        problem = f"it was compacted by another policy than `journal` ({policies})"
    else:
        problem = writer.refuses_compacted({} if is_begun else _offsets_below(log, below), is_begun)
    if problem:
        raise HistoryCompacted(log.manifest.pipeline, name, first_id, below, problem, way)


def _offsets_below(log: PublishedLog, below: int) -> Mapping[TopicPartition, int]:
    """The last offset of every partition whose id is below one."""
    found: dict[TopicPartition, int] = {}
    for binding, _ in log.waiting(-1):
        if binding.base >= below:
            break
        found |= binding.offsets_at(below - 1)
    return found
