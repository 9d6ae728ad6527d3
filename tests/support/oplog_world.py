"""A pipeline of operations with its collection, in memory: messages as words, and the state as words."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from tests.support.collection_rows import newest
from tests.support.memory_collection import TOPIC, CollectionWorld
from tests.support.operation_samples import MOMENT, given_operation

from tidemark.collection.model.row import CollectionRow
from tidemark.log.files.parquet import LOG_SCHEMA
from tidemark.log.model.binding import Binding
from tidemark.operations.corrections import CORRECTION_HEADER, Correction
from tidemark.operations.operation import EventName, encoded

OPERATIONS: dict[str, Any] = {"envelope": "oplog", "key": [["type", "text"], ["id", "text"]]}
OPERATIONS["columns"] = [["event", "text"], ["timestamp", "timestamp"], ["parents", "list<text>"]]
_EVENTS = {"+": EventName.UPDATE, "~": EventName.DELETE}


def record_of(word: str, topic_id: str, number: int = 0) -> dict[str, Any]:
    """Key, value and headers of a message.

    ``x`` inserts an object, ``x+`` updates it, ``x~`` deletes it, ``x@5`` is a correction whose sender had
    read the offsets below 5, ``x~@5`` a deletion of this kind, ``x@5!id`` one for the topic with another id,
    and ``x?`` no operation. The timestamp of a message is its number.
    """
    name, _, correction = word.partition("@")
    looked_at, _, other = correction.partition("!")
    if name.endswith("?"):
        return {"key": f"video/{name[:-1]}".encode(), "value": b"no json", "headers": None}
    event = _EVENTS.get(name[-1], EventName.INSERT)
    operation = given_operation(event, MOMENT + number, (), id_=name.rstrip("+~"))
    headers = None
    if correction:
        header = Correction("sync-1", int(looked_at), other or topic_id).to_header()
        headers = [{"name": CORRECTION_HEADER, "value": header}]
    return {"key": operation.key, "value": encoded(operation), "headers": headers}


def operation_records(
    binding: Binding, partition: int, words: str, lower: int, topic_id: str, topic: str = TOPIC
) -> pa.RecordBatch:
    """Messages of a partition, a word each; ``-`` is an offset without a message."""
    messages = []
    for offset, word in enumerate(words.split(), start=lower):
        if word == "-":
            continue
        id_ = binding.id_of(topic, partition, offset)
        place = {"topic": topic, "partition": partition, "offset": offset, "namespace": topic}
        times = {"t": binding.t, "write_time": binding.write_time(id_), "timestamp": 1, "timestamp_type": 0}
        messages.append({"id": id_, **place, **times, **record_of(word, topic_id, id_)})
    return pa.RecordBatch.from_pylist(messages, schema=LOG_SCHEMA)


def events_of(rows: Iterable[CollectionRow]) -> list[str]:
    """Rows as ``id=event``, by their messages."""
    return [f"{row.key[1].decode()}={(row.values[0] or b'').decode()}" for row in rows]


class OplogWorld(CollectionWorld):
    """Every delivery is a process of its own."""

    def __init__(self, root: Any, **keys: Any) -> None:
        super().__init__(root, **(OPERATIONS | keys))

    def records(self, binding: Binding, partition: int, words: str, lower: int) -> pa.RecordBatch:
        return operation_records(binding, partition, words, lower, self.topic_id)

    @property
    def written(self) -> list[str]:
        """Every row, by id."""
        return events_of(self.collection.rows)

    def objects(self, at: int = 10**18) -> dict[str, str]:
        """The event that each object has last had at a time."""
        found = newest(self.collection.rows, at).values()
        return dict(text.split("=") for text in sorted(events_of(found)))
