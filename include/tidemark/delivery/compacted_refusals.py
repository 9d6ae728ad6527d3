"""Writers that a compacted log refuses before they have ever run, as far as their declaration says so.

The rule itself is ``require_history``, which is asked when a writer is registered. Here the same answer is
given without a target and without the log's files, for commands that show state and for compaction: waiting
for a writer that can never begin would hold the log back for ever. A journal is not judged here: whether it
may begin depends on what its keyspace holds.
"""

from collections.abc import Iterable

from tidemark.delivery.redeliver import HistoryCompacted
from tidemark.delivery.state.registration import BEGIN_ANEW
from tidemark.delivery.writer import MISSED_FOR_EVER
from tidemark.pipeline.model import AnyWriter, WriterStart


def refusal_of(pipeline: str, declared: AnyWriter, compacted_below: int) -> HistoryCompacted | None:
    """Why a writer that is not registered yet cannot begin; None where nothing is known against it."""
    is_whole = compacted_below <= 0
    if is_whole or not declared.needs_every_message or declared.start is WriterStart.LATEST:
        return None
    return HistoryCompacted(pipeline, declared.name, 0, compacted_below, MISSED_FOR_EVER, BEGIN_ANEW)


def needing_every_message(declared: Iterable[AnyWriter]) -> tuple[str, ...]:
    """The names of the writers that a compacted log refuses."""
    return tuple(one.name for one in declared if refusal_of("", one, compacted_below=1))
