"""The messages of chosen entities out of the log's files, as a verification needs them.

Every file is verified before its first message is given. Where few entities are wanted, most of a file is
never decoded.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.delivery.published import reading
from tidemark.delivery.records import records_of
from tidemark.journal.record import read_key
from tidemark.log.files import LOG_SCHEMA, LogFolder
from tidemark.log.manifest import LogFile, Manifest
from tidemark.verification.basis import Basis
from tidemark.verification.judge import LoggedRecord
from tidemark.verification.selection import Choice, Everything

_COLUMNS = tuple(name for name in LOG_SCHEMA.names if name not in ("topic", "namespace"))


def files_of(manifest: Manifest, basis: Basis, topics: Sequence[str] = ()) -> list[LogFile]:
    """The files that can say something about the writer's entities, in id order."""
    wanted = basis.topics & set(topics) if topics else basis.topics
    return [file for file in manifest.files if file.topic in wanted and file.first_id <= basis.horizon]


def read_records(
    folder: LogFolder, file: LogFile, choice: Choice, last_id: int
) -> Iterator[tuple[str, LoggedRecord]]:
    """The messages of chosen entities up to an id, each with its key; what has no key is nobody's."""
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


def read_keys(folder: LogFolder, file: LogFile, last_id: int) -> set[str]:
    """The keys that a file has messages of, up to an id."""
    found: set[str] = set()
    with reading():
        for batch in folder.read_file(file, ["id", "key"]):
            keys = batch["key"].filter(pc.less_equal(batch["id"], last_id)).unique()
            found.update(read_key(key) for key in keys.to_pylist() if key is not None)
    return found


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
