"""Logs in one line each, with what the tests of compaction do to them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.support.oplog_world import record_of

from tidemark.compaction.engine import InProcess, Surveyed
from tidemark.compaction.plan import CompactionPlan, make_plan
from tidemark.compaction.policies.rules import CompactionRules, candidates, question_digest
from tidemark.compaction.staging import Workplace
from tidemark.compaction.watermark import find_watermark
from tidemark.journal.action import Action, Delete, Mark, Purge, append
from tidemark.journal.codec.record import write_action
from tidemark.journal.events import EncodedEvent, Events
from tidemark.log.files.folder import Folder
from tidemark.log.files.parquet import LOG_SCHEMA, write_parquet
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.model.manifest import LogFile, Manifest, Segment

JOURNAL, LATEST, PROGRESS, OPLOG = "journal", "latest", "progress", "oplog"
SEGMENT_BYTES = 10**9
EXAMPLE_C = "A A B B A A B B C A C B A A C B A"
"""The old segment of the original document's example; ids 0 to 16."""
EXAMPLE_C_ACTIVE = "A A B B A A B B C A C"
"""Its active segment; ids 17 to 27."""


@dataclass(frozen=True)
class Sent:
    """A message before it has its place: a namespace of its own stands for the topic."""

    key: bytes | None
    value: bytes | None = b"v"
    topic: str = "orders"
    partition: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 1
    timestamp_type: int = 0
    offset: int | None = None
    """Left out, the id: offsets need only grow."""


def sent(action: Action, partition: int = 0, offset: int | None = None) -> Sent:
    """The message of an action."""
    record = write_action(action)
    return Sent(record.key, record.value, "orders", partition, record.headers, record.timestamp, 0, offset)


def operated(word: str, offset: int | None = None, topic_id: str = "first", partition: int = 0) -> Sent:
    """An operation as ``record_of`` writes it; the topic has the id ``first``."""
    record = record_of(word, topic_id)
    headers = tuple((one["name"], one["value"]) for one in record["headers"] or ())
    return Sent(record["key"], record["value"], "orders", partition, headers, offset=offset)


def of_namespaces(text: str) -> list[Sent]:
    """One message a letter, of the namespace it names."""
    return [Sent(b"k", topic=letter) for letter in text.split()]


def of_keys(text: str) -> list[Sent]:
    """One message a word, of the key it names; with a minus sign in front it has no value."""
    return [Sent(word.lstrip("-").encode(), None if word.startswith("-") else b"v") for word in text.split()]


def rows_of(messages: Iterable[tuple[int, Sent]], times: Mapping[int, int] | None = None) -> pa.RecordBatch:
    """Messages as the log keeps them; ``times`` gives another t than 1000 + id."""
    return pa.RecordBatch.from_pylist(
        [
            {
                "id": id_,
                "t": (times or {}).get(id_, 1_000 + id_),
                "write_time": 1_000 + id_,
                "topic": one.topic,
                "partition": one.partition,
                "offset": id_ if one.offset is None else one.offset,
                "timestamp": one.timestamp,
                "timestamp_type": one.timestamp_type,
                "key": one.key,
                "value": one.value,
                "headers": [{"name": name, "value": value} for name, value in one.headers],
                "namespace": one.topic,
            }
            for id_, one in messages
        ],
        schema=LOG_SCHEMA,
    )


@dataclass(frozen=True)
class MemoryPlace(Workplace):
    """A workplace whose files and notes are in memory."""

    files: dict[str, pa.RecordBatch] = field(default_factory=dict, hash=False)
    notes: dict[tuple[str, str], np.ndarray] = field(default_factory=dict, hash=False)

    def eligible(self, file, watermark, columns=None):
        batch = self.files[file.path]
        below = batch.slice(0, int(np.searchsorted(batch["id"].to_numpy(), watermark)))
        if below.num_rows:
            yield below.select(list(columns)) if columns else below

    def may_lack_values(self, file):
        return self.files[file.path]["value"].null_count > 0

    def _note(self, kind, file, numbers):
        self.notes[kind, file.path] = numbers

    def _noted(self, kind, file):
        return self.notes[kind, file.path]


@dataclass
class MemoryLog:
    """A log in memory: segments of files, each a run of messages of one partition."""

    manifest: Manifest
    files: dict[str, pa.RecordBatch]

    @property
    def ids(self) -> list[int]:
        return sorted(id_ for batch in self.files.values() for id_ in batch["id"].to_pylist())

    def rows(self) -> list[dict]:
        """All messages in id order."""
        found = (row for batch in self.files.values() for row in batch.to_pylist())
        return sorted(found, key=lambda row: row["id"])


def given_log(
    *segments: Sequence[Sent], per_file: int = 1_000, times: Mapping[int, int] | None = None, first: int = 0
) -> MemoryLog:
    """A log; in every segment each partition's messages are in files of ``per_file``."""
    made, files, next_id = [], {}, first
    for messages in segments:
        numbered = list(enumerate(messages, next_id))
        next_id += len(numbered)
        in_order = sorted(numbered, key=lambda one: (one[1].topic, one[1].partition, one[0]))
        own = []
        for (topic, partition), group in groupby(in_order, lambda one: (one[1].topic, one[1].partition)):
            rows = list(group)
            for start in range(0, len(rows), per_file):
                file, batch = given_file(topic, partition, rows_of(rows[start : start + per_file], times))
                files[file.path] = batch
                own.append(file)
        made.append(Segment(tuple(sorted(own, key=lambda file: file.first_id))))
    kept = tuple(segment for segment in made if segment.files)
    return MemoryLog(Manifest.of_segments("orders", kept, t=next_id + 1_000, end=next_id - 1), files)


def given_file(topic: str, partition: int, batch: pa.RecordBatch) -> tuple[LogFile, pa.RecordBatch]:
    first, last = batch["id"][0].as_py(), batch["id"][-1].as_py()
    path = f"files/{first:020d}-{last:020d}-{topic}-{partition}.parquet"
    times = batch["t"].to_pylist()
    count = batch.num_rows
    return LogFile(path, times[-1], topic, partition, first, last, count, 100 * count, path, times[0]), batch


def given_rules(log: MemoryLog, policy: str, watermark: int, **further) -> CompactionRules:
    rules = CompactionRules(policy, watermark, SEGMENT_BYTES, **further)
    inactive = [id_ for file in candidates(log.manifest) for id_ in log.files[file.path]["id"].to_pylist()]
    last = max((id_ for id_ in inactive if id_ < watermark), default=-1)
    return (
        rules
        if policy is JOURNAL
        else CompactionRules(policy, watermark, SEGMENT_BYTES, last_eligible=last, **further)
    )


def plan_compaction(
    log: MemoryLog, policy: str, positions: Mapping[str, int] | None = None, **further
) -> tuple[CompactionPlan, Surveyed, MemoryPlace]:
    """What a compaction would do; writers are far ahead unless their positions are given."""
    reached = {"c0": log.manifest.end} if positions is None else positions
    mark = find_watermark(log.manifest, reached, (), now=10**9, min_lag=0)
    rules = given_rules(log, policy, mark.id, **further)
    files = [file for file in candidates(log.manifest) if rules.is_eligible(file)]
    place = MemoryPlace("orders", "", "0" * 64, log.files)
    surveyed = InProcess().survey(place, rules, files)
    digest = question_digest("orders", candidates(log.manifest), rules)
    plan = make_plan(log.manifest, digest, 10**9, mark, rules, surveyed.census, surveyed.drops)
    return plan, surveyed, place


def dropped_ids(place: MemoryPlace) -> set[int]:
    return {int(id_) for (kind, _), ids in place.notes.items() if kind == "dropped" for id_ in ids}


def compacted(log: MemoryLog, policy: str, watermark: int, **further) -> MemoryLog:
    """The log without what goes below a watermark; every inactive file as it was, but shorter."""
    rules = given_rules(log, policy, watermark, **further)
    files = [file for file in candidates(log.manifest) if rules.is_eligible(file)]
    place = MemoryPlace("orders", "", "0" * 64, log.files)
    InProcess().survey(place, rules, files)
    gone = dropped_ids(place)
    segments, kept = [], {}
    for segment in log.manifest.segments:
        own = []
        for file in segment.files:
            batch = log.files[file.path]
            left = batch.filter(pa.array([id_ not in gone for id_ in batch["id"].to_pylist()]))
            if left.num_rows:
                shorter, _ = given_file(file.topic, file.partition, left)
                kept[shorter.path] = left
                own.append(shorter)
        segments.append(Segment(tuple(own)))
    whole = tuple(segment for segment in segments if segment.files)
    return MemoryLog(Manifest.of_segments("orders", whole, log.manifest.t, log.manifest.end), kept)


def survivors(log: MemoryLog, policy: str, positions=None, **further) -> list[int]:
    """The ids of inactive segments that stay."""
    _, _, place = plan_compaction(log, policy, positions, **further)
    gone = dropped_ids(place)
    inactive = {file.path for file in candidates(log.manifest)}
    ids = (id_ for path in inactive for id_ in log.files[path]["id"].to_pylist())
    return sorted(id_ for id_ in ids if id_ not in gone)


def write_log(root: Path, log: MemoryLog) -> Manifest:
    """The log as files on disk, with the digests and sizes they really have."""
    folder, segments = Folder("orders", str(root)), []
    for segment in log.manifest.segments:
        own = []
        for file in segment.files:
            with folder.stage() as staged:
                write_parquet(staged.sink, [log.files[file.path]])
                staged.settle(file.path)
            sized = {"bytes": staged.sink.size, "digest": staged.sink.digest, "first_t": file.first_t}
            own.append(LogFile(**{**file.to_row(), **sized}))
        segments.append(Segment(tuple(own)))
    return Manifest.of_segments("orders", tuple(segments), log.manifest.t, log.manifest.end)


def binding_of(t: int, base: int, width: int) -> Binding:
    """A binding of one partition."""
    return Binding(t, base, (Slice("orders", 0, base, base + width),), f"run {t}")


def added(first, last=None, key="a"):
    numbers = range(first, (last or first) + 1)
    return sent(append(key, 1, Events(tuple(EncodedEvent(number) for number in numbers))))


def deleted(to, key="a"):
    return sent(Delete(key, 1, to))


def purged(key="a"):
    return sent(Purge(key, 1))


def marked(key="a"):
    return sent(Mark(key, 1, "m"))
