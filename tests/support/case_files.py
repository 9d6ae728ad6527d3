"""The contract's machine-readable cases: loading them, and their notation turned into Kafka records."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

from tests.support.writer_model import Delivered, Writer

from tidemark.journal.action import Delete, Mark, Purge, append
from tidemark.journal.codec.expire_after import read_expire_after
from tidemark.journal.codec.record import write_action
from tidemark.journal.events import EncodedEvent, Events, PayloadMetadata
from tidemark.journal.head import Head
from tidemark.journal.segments import row_segment

_CASES = json.loads(Path(__file__).with_name("kafka-journal-cases.json").read_text())["cases"]
REPLICATION = {case["id"]: case for case in _CASES if case["kind"] == "replication"}
BATCH = {case["id"]: case for case in _CASES if case["kind"] == "batch"}

_ODD_HEADERS = {"unknown_action": b'{"new":{}}', "unparsable": b"{"}


def micros(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * 1_000_000


def millis(text: str) -> int:
    return micros(text) // 1000


def event(seq_nr: int) -> EncodedEvent:
    return EncodedEvent(seq_nr, ("tag",), "json", f'{{"n":{seq_nr}}}')


class Source:
    """Gives records their ids and times, the same ones whenever the same record comes again."""

    def __init__(self) -> None:
        self._bound: dict[tuple[int, int], tuple[int, int]] = {}

    def deliver(self, poll: dict[str, Any]) -> list[Delivered]:
        return [self._delivered(poll, record) for record in poll["records"]]

    def _delivered(self, poll: dict[str, Any], record: dict[str, Any]) -> Delivered:
        place = (poll["partition"], record["offset"])
        bound_at = micros(poll["timestamp"])
        message_id, bound_at = self._bound.setdefault(place, (len(self._bound), bound_at))
        key, value, headers = kafka_form(record)
        timestamp = millis(record.get("timestamp", poll["timestamp"]))
        return Delivered(message_id, *place, bound_at + message_id, bound_at, key, value, timestamp, headers)


def kafka_form(
    record: dict[str, Any],
) -> tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]:
    key, origin = record.get("key", "id"), record.get("origin")
    match record["type"]:
        case "append":
            expire_after = record.get("expireAfter")
            metadata = PayloadMetadata(read_expire_after(expire_after) if expire_after else None)
            events = Events(tuple(map(event, record["seqNrs"])), metadata)
            action = append(key or "", 0, events, origin=origin)
        case "delete":
            action = Delete(key, 0, record["to"], origin)
        case "purge":
            action = Purge(key, 0, origin)
        case "mark":
            action = Mark(key, 0, "mark", origin)
    written = write_action(action)
    value = {"null": None, "corrupt": b"{"}.get(record.get("value", ""), written.value)
    headers: tuple[tuple[str, bytes | None], ...] = written.headers
    if record.get("header") == "missing":
        headers = headers[1:]
    elif "header" in record:
        headers = ((headers[0][0], _ODD_HEADERS[record["header"]]), *headers[1:])
    return None if key is None else written.key, value, headers


def a_record_id(name: str | None) -> UUID | None:
    return None if name is None else uuid5(NAMESPACE_OID, name)


def load(case: dict[str, Any], tables: dict[str, Any], segment_size: int | None) -> Writer:
    """A writer whose tables hold what the case says, laid out anew for ``segment_size`` if there is one."""
    config = case["config"]
    zone = timezone(timedelta(hours=config["zoneOffsetHours"])) if config["zoneOffsetHours"] else UTC
    writer = Writer(case["topic"], segment_size or config["segmentSize"], zone)
    sizes = {}
    for row in tables.get("metajournal", []):
        expire_after = row["expire_after"]
        head = Head(
            row["segment"],
            row["partition"],
            row["offset"],
            segment_size or row["segment_size"],
            row["seq_nr"],
            row["delete_to"],
            millis(row["created"]),
            millis(row["updated"]),
            read_expire_after(expire_after).nanos if expire_after else None,
            datetime.fromisoformat(row["expire_on"]).date() if row["expire_on"] else None,
            a_record_id(row["record_id"]),
            row["origin"],
        )
        sizes[row["id"]] = head.segment_size
        writer.insert_head(row["id"], head, 0)
    for row in tables.get("journal", []):
        size = sizes.get(row["id"], writer.segment_size)
        cells = {
            "id": row["id"],
            "topic": row["topic"],
            "segment": row_segment(row["seq_nr"], size),
            "seq_nr": row["seq_nr"],
            "timestamp": millis(row["timestamp"]),
            "partition": row["partition"],
            "offset": row["offset"],
            "meta_record_id": a_record_id(row["meta_record_id"]),
            "tags": (),
            "headers": {},
            "write_time": 0,
        }
        writer.insert_row(cells)
    for row in tables.get("pointer2", []):
        writer.pointers[row["partition"]] = row["offset"]
    return writer
