"""Verification of a kafka writer's topic: the ids at the end of every partition are compared with the log's.

Only messages at or below the position count, without those that were filtered, dropped or acknowledged. What
retention has removed from the beginning of a partition cannot be judged, nor can the middle of a topic that
Kafka compacts. Nothing is sent here.
"""

import time
from array import array
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from tidemark.delivery.delivered_messages import MOST_LOOKED_BACK, Finished
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.positions import Positions, refuse_other_shape
from tidemark.delivery.state.writer_state import WriterState
from tidemark.delivery.target import TargetVerdict, compare, replaced
from tidemark.delivery.writer import TargetMissing
from tidemark.pipeline.model import WriterStart
from tidemark.verification.outputs.found import Extent, OutputDifference, OutputProblem, OutputVerification
from tidemark.writers.kafka.last_id import PartitionEnd, read_tail
from tidemark.writers.kafka.target import keeps_the_middle
from tidemark.writers.kafka.writer import PARTITIONS_AT_ONCE, KafkaWriter

REMOVED = "partitions of which everything was removed (by retention, or by hand)"
NO_START = "partitions without a message, of a writer of which an older version did not keep where it began"
COMPACTED = "partitions that Kafka compacts, or may: only their last id is compared"
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Compared:
    """The ids that are missing in one partition: after the last id found, and before it."""

    at_end: tuple[int, ...]
    between: tuple[int, ...]


def compare_ids(expected: Sequence[int], found: Sequence[int]) -> Compared:
    """The expected ids that were not found."""
    present, last_id = set(found), max(found, default=-1)
    missing = [id_ for id_ in expected if id_ not in present]
    return Compared(
        tuple(id_ for id_ in missing if id_ > last_id), tuple(id_ for id_ in missing if id_ < last_id)
    )


def first_compared(tail: PartitionEnd, since: int | None, floor: int) -> int | None:
    """The id from which on a partition must be complete; None where that is unknown.

    Args:
        tail: The end of the partition, as far as it was read.
        since: The first id that the writer has delivered; None where an older version did not record it.
        floor: No earlier id is compared.
    """
    if since is not None and tail.is_whole and tail.begins_at == 0:
        first = since
    elif tail.ids:
        first = min(tail.ids)
    else:
        return None
    return max(first, floor)


def judge_partition(partition: int, compared: Compared, compacts: bool) -> list[OutputDifference]:
    """The differences of a partition; missing ids between others are none where Kafka compacts the topic."""
    found: list[OutputDifference] = []
    if compared.at_end:
        found.append(_difference(OutputProblem.END, partition, compared.at_end, "at its end"))
    if compared.between and not compacts:
        found.append(_difference(OutputProblem.HOLE, partition, compared.between, "between others"))
    return found


def verify_topic(
    writer: KafkaWriter, log: PublishedLog, positions: Positions, state: WriterState, extent: Extent
) -> OutputVerification:
    """Verify the topic's partitions up to the position.

    Refuses settings, and a number of partitions, by which messages would be placed differently.
    """
    # Settings first: a topic of another name would otherwise look like one that was created again.
    refuse_other_shape(state, replace(writer, partitions=state.shape.get("partitions")).shape)
    began, position = time.monotonic(), state.position
    name = f"topic {writer.declared.topic}"

    def result(
        looked_at: Mapping[str, int],
        differences: Sequence[OutputDifference],
        not_provable: Mapping[str, int] | None = None,
    ) -> OutputVerification:
        seconds = time.monotonic() - began
        return OutputVerification(
            *(state.pipeline, state.name, "kafka", position),
            *(looked_at, tuple(differences), not_provable or {}, seconds),
        )

    try:
        present = writer.identify()
    except TargetMissing as missing:
        return result({}, [OutputDifference(OutputProblem.REPLACED, name, str(missing), 0, position)])
    if present is not None and compare(state, present) is TargetVerdict.REPLACED:
        problem = str(replaced(state, present))
        return result({}, [OutputDifference(OutputProblem.REPLACED, name, problem, 0, position)])
    bound = writer.bound_to(present) if present else writer
    refuse_other_shape(state, bound.shape)
    tails = read_tails(bound, None if extent.everything else max(extent.sample, 1))
    since = state.since
    if since is None and writer.declared.start is WriterStart.EARLIEST:
        since = 0
    floor = 0 if extent.everything else max(0, position - MOST_LOOKED_BACK + 1)
    firsts = {number: first_compared(tail, since, floor) for number, tail in tails.items()}
    finished = Finished(log, positions.acknowledged(writer.name))
    expected = expected_ids(bound, finished, firsts, position)
    compacts = not keeps_the_middle(bound.target)
    differences: list[OutputDifference] = []
    for number, ids in expected.items():
        differences += judge_partition(number, compare_ids(ids, tails[number].ids), compacts)
    removed = sum(tail.is_emptied for tail in tails.values())
    unproven = {
        REMOVED: removed,
        NO_START: len(tails) - len(expected) - removed,
        COMPACTED: len(expected) if compacts else 0,
    }
    messages = sum(len(ids) for ids in expected.values())
    looked_at = {"partitions": len(tails), "messages compared": messages}
    return result(looked_at, differences, {why: count for why, count in unproven.items() if count})


def read_tails(writer: KafkaWriter, most: int | None) -> dict[int, PartitionEnd]:
    """The last ``most`` offsets of every partition; all of them for None."""
    numbers = range(writer.shape["partitions"])
    with ThreadPoolExecutor(PARTITIONS_AT_ONCE) as pool:
        found = pool.map(lambda number: read_tail(writer.target, number, most), numbers)
        return dict(zip(numbers, found, strict=True))


def expected_ids(
    writer: KafkaWriter, finished: Finished, firsts: Mapping[int, int | None], position: int
) -> dict[int, "array[int]"]:
    """The ids that every partition should have, from its first compared id up to the position.

    Partitions without a first compared id are left out.
    """
    judged = {number: first for number, first in firsts.items() if first is not None}
    expected = {number: array("q") for number in judged}
    if not judged:
        return expected
    placing = writer.placing()
    for batch in finished.messages(min(judged.values()), position):
        for message in batch.to_pylist():
            number = placing(message)
            if number in judged and message["id"] >= judged[number]:
                expected[number].append(message["id"])
    return expected


def _difference(problem: OutputProblem, partition: int, ids: Sequence[int], where: str) -> OutputDifference:
    named = ", ".join(str(id_) for id_ in ids[:MOST_NAMED]) + (", …" if len(ids) > MOST_NAMED else "")
    what = f"{len(ids):,} message{'' if len(ids) == 1 else 's'} missing {where} (id {named})"
    return OutputDifference(problem, f"partition {partition}", what, ids[0], ids[-1])
