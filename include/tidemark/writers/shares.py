"""How bindings are divided for targets in which every Kafka partition is on its own.

A part is one Kafka partition. A partition with very many messages is shared among several parts by a hash of
the message, so that what has to stay together, such as the messages of a key, is in one of them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from tidemark.delivery.writer import Part
from tidemark.log.model.binding import Binding
from tidemark.log.model.manifest import LogFile

HashOf = Callable[[pa.RecordBatch], Sequence[int]]
"""The hash of every message of a batch: the same in every process."""


def parts_by_partition(binding: Binding, files: Sequence[LogFile], messages_a_part: int) -> list[Part]:
    """One part per Kafka partition, several for a large one. Every file holds one partition."""
    places = dict.fromkeys(file.place for file in files)
    whole = [Part(binding, tuple(file for file in files if file.place == place)) for place in places]
    return [replace(part, number=number) for part in whole for number in _numbers(part, messages_a_part)]


def count_shares(part: Part, messages_a_part: int) -> int:
    """Into how many parts the partition of a part is divided."""
    return -(-part.most // messages_a_part)


def of_share(
    batches: Iterable[pa.RecordBatch], part: Part, messages_a_part: int, hash_of: HashOf
) -> Iterator[pa.RecordBatch]:
    """The messages that belong to a part, of all those of its partition."""
    number, shares = part.number, count_shares(part, messages_a_part)
    for batch in batches:
        if number is None:
            yield batch
        else:
            ours = [one % shares == number for one in hash_of(batch)]
            yield batch.filter(pa.array(ours, pa.bool_()))


def chunks(batches: Iterable[pa.RecordBatch], messages: int, size: int) -> Iterator[pa.Table]:
    """Batches, collected into chunks that are large enough to be worth their round trips to the target.

    Args:
        batches: The batches.
        messages: The most messages of a chunk.
        size: The bytes from which on a chunk is large enough.
    """
    waiting: list[pa.RecordBatch] = []
    for batch in _slices(batches, messages):
        waiting.append(batch)
        rows, bytes_ = sum(each.num_rows for each in waiting), sum(each.nbytes for each in waiting)
        if rows >= messages or bytes_ >= size:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _numbers(part: Part, messages_a_part: int) -> Sequence[int | None]:
    shares = count_shares(part, messages_a_part)
    return range(shares) if shares > 1 else (None,)


def _slices(batches: Iterable[pa.RecordBatch], messages: int) -> Iterator[pa.RecordBatch]:
    """The batches, sliced so that none has more messages than a chunk."""
    for batch in batches:
        for start in range(0, batch.num_rows, messages):
            yield batch.slice(start, messages)
