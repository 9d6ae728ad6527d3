"""Reads the messages of chosen entities from the log's files.

The digest of every file is verified before its first message is returned. Where few entities are chosen, most
of a file is never decoded.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.delivery.published_log import reading
from tidemark.delivery.records import records_of
from tidemark.journal.codec.record import read_key
from tidemark.log.files.merge import entwined, lanes
from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.log.model.manifest import LogFile, Manifest
from tidemark.verification.basis import Basis
from tidemark.verification.journal.judge import LoggedRecord
from tidemark.verification.selection import EVERYTHING, Choice, Entity, EntitySelection, Everything

_COLUMNS = tuple(name for name in LOG_SCHEMA.names if name not in ("topic", "namespace"))


def files_of(manifest: Manifest, basis: Basis, topics: Sequence[str] = ()) -> list[LogFile]:
    """The files that may hold messages of the writer's entities, in id order; of these topics, or of all."""
    wanted = basis.topics & set(topics) if topics else basis.topics
    found = manifest.files_between(0, basis.horizon)
    return [file for file in found if file.topic in wanted and _may_have(basis, file)]


def files_backwards(manifest: Manifest, basis: Basis) -> Iterator[LogFile]:
    """As ``files_of``, but the file with the highest last id first, and only as far as the caller goes: no
    list of segments before that is read, and none before the writer's first message."""
    oldest = min(basis.first_ids.values(), default=0)
    found = manifest.files_newest(lambda one: one.first_id <= basis.horizon and one.last_id >= oldest)
    return (file for file in found if file.topic in basis.topics and _may_have(basis, file))


def _may_have(basis: Basis, file: LogFile) -> bool:
    return basis.may_take(file.topic, file.first_id, file.last_id)


def read_records(
    folder: LogFolder, file: LogFile, choice: Choice, last_id: int
) -> Iterator[tuple[str, LoggedRecord]]:
    """The messages of chosen entities up to an id, each with its key; those without a key are left out."""
    with reading():
        for messages in _chosen(folder, file, choice):
            kept = messages
            if file.last_id > last_id:
                kept = messages.filter(pc.less_equal(messages["id"], last_id))
            keys = _texts(kept["key"])
            for key, (id_, offset, write_time, t, _, value, timestamp, type_, headers) in zip(
                keys, records_of(kept), strict=True
            ):
                if key is not None:
                    place = (id_, file.partition, offset, write_time, t)
                    yield key, LoggedRecord(*place, value, timestamp, type_, headers)


def read_in_order(
    folder: LogFolder, files: Iterable[LogFile], choice: Choice, last_id: int
) -> Iterator[tuple[Entity, LoggedRecord]]:
    """The messages of chosen entities from several files, those of each entity oldest first.

    Files of different partitions may have overlapping ids, and an entity may be in several partitions.
    """

    def read(lane: Sequence[LogFile]) -> Iterator[tuple[Entity, LoggedRecord]]:
        for file in lane:
            for key, record in read_records(folder, file, choice, last_id):
                yield Entity(file.topic, key), record

    for together in entwined(sorted(files, key=lambda one: one.first_id)):
        yield from heapq.merge(*map(read, lanes(together)), key=lambda found: found[1].id)


def read_keys(
    folder: LogFolder, file: LogFile, last_id: int, first_id: int = 0, selection: EntitySelection = EVERYTHING
) -> set[str]:
    """The keys of a file's messages with ids from ``first_id`` to ``last_id``, both included.

    Where ``selection`` has an interval, only messages of its bindings count.
    """
    found: set[str] = set()
    with reading():
        for batch in folder.read_file(file, ["key", "t"], first_id, last_id):
            keys = batch["key"]
            if selection.is_interval:
                keys = keys.filter(_in_interval(batch["t"], selection))
            found.update(read_key(key) for key in keys.unique().to_pylist() if key is not None)
    return found


def _in_interval(times: pa.Array, selection: EntitySelection) -> pa.Array:
    chosen = {t: selection.has_time(t) for t in times.unique().to_pylist()}
    inside = pa.array([t for t, is_inside in chosen.items() if is_inside], times.type)
    return pc.is_in(times, value_set=inside)


def _chosen(folder: LogFolder, file: LogFile, choice: Choice) -> Iterator[pa.Table]:
    if isinstance(choice, Everything):
        for batch in folder.read_file(file, _COLUMNS):
            yield pa.Table.from_batches([batch])
        return

    def choose(keys: pa.ChunkedArray) -> pa.Array:
        encoded = keys.combine_chunks().dictionary_encode()
        chosen = choice(file.topic, [read_key(key) for key in encoded.dictionary.to_pylist()])
        return pc.fill_null(pa.array(chosen, pa.bool_()).take(encoded.indices), False)

    yield from folder.read_chosen(file, choose)


def _texts(keys: pa.ChunkedArray) -> list[str | None]:
    encoded = keys.combine_chunks().dictionary_encode()
    texts = [read_key(key) for key in encoded.dictionary.to_pylist()]
    return [None if index is None else texts[index] for index in encoded.indices.to_pylist()]
