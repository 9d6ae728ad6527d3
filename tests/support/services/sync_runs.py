"""A pipeline of operations on real services: what is sent to it, its runs, and its synchronisations."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.support.operation_topic import MemoryTopic
from tests.support.services.log_runs import (
    LogRuns,
    connections_file,
    deliver_here,
    publish_here,
    spark_environ,
)

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.sync import open_sync
from tidemark.connections import Connections
from tidemark.faults import AT_ONCE, VARIABLE, FaultPoint
from tidemark.kafka.consumer import PartitionReader
from tidemark.kafka.producer import RecordToSend, send_all
from tidemark.operations.operation import EventName, ObjectOperation, encoded, object_key
from tidemark.oplog.sync.current_objects import read_current
from tidemark.oplog.sync.kafka_operations import partition_of
from tidemark.oplog.sync.run_files import DiffSummary
from tidemark.oplog.sync.synchronisation import WHO, Synchronisation
from tidemark.pipeline.loader import find_pipeline
from tidemark.settings import ROOT

WRITER = "name: objects, kind: collection, keyspace: {name}, envelope: oplog, shards: 2"
SEND = "import sys; from tests.support.services import sync_runs; sync_runs.send_corrections(*sys.argv[1:])"
TYPE = "video"
PARTITIONS = 2


@dataclass(frozen=True)
class SyncRuns:
    """See the module."""

    runs: LogRuns

    @property
    def opened(self) -> OpenPipeline:
        return OpenPipeline(self.runs.pipeline, self.runs.connections)

    @cached_property
    def sync(self) -> Synchronisation:
        return open_sync(self.opened)

    def send(self, *operations: tuple[str, str, int] | tuple[str, str, int, list[str]]) -> None:
        """Operations by id, event, and time in seconds since 1970."""
        records = []
        for id_, event, at, *parents in operations:
            one = ObjectOperation(EventName(event), at * 1_000, tuple(*parents), TYPE, id_)
            partition = partition_of(TYPE, id_, PARTITIONS)
            records.append(RecordToSend(self.runs.name, one.key, encoded(one), partition=partition))
        send_all(self.runs.connections.kafka, records, 30)

    def replicate(self, run_id: str) -> None:
        """Everything that the topic has, in the collection."""
        publish_here(self.runs, run_id)
        deliver_here(self.opened, "objects")

    def replicate_if_new(self, run_id: str) -> None:
        """The same, where there is something new."""
        topic = self.sync.read_topic()
        head = self.runs.control.bindings_head().reached
        if any(head.get((topic.topic, number), 0) < end for number, end in topic.ends.items()):
            self.replicate(run_id)

    def dump(self, *lines: tuple[str, int] | tuple[str, int, list[str]]) -> str:
        """A dump of objects: id, time in seconds, parents."""
        path = self.runs.root / "dump.jsonl"
        path.write_text("".join(_line(*one) + "\n" for one in lines))
        return str(path)

    def compare(self, dump: str, start: str) -> DiffSummary:
        """The steps up to the comparison, which is the Spark application's."""
        validated = self.sync.validate(dump, start, print)
        known = self.sync.reached(self.sync.read_topic())
        arguments = ["--run", validated.key, "--t", str(known.t)]
        ended = self.runs._application("sync_objects", arguments, None)
        assert ended.code == 0, ended
        return self.sync.files.diff(validated.key, known.t)

    def send_killed(self, diff: DiffSummary, point: FaultPoint) -> int:
        """Send corrections in a process that is killed at this point; its exit code."""
        with connections_file(self.runs.connections) as connections:
            arguments = [self.runs.name, str(connections), diff.key, str(diff.t)]
            environ = {**os.environ, VARIABLE: point, AT_ONCE: "2"}
            done = subprocess.run([sys.executable, "-c", SEND, *arguments], cwd=ROOT, env=environ)
        return done.returncode

    @contextmanager
    def script(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """``oplog-sync`` as a process of its own."""
        program = Path(sys.executable).parent / "oplog-sync"
        environ = {**os.environ, **spark_environ()}
        command = [str(program), self.runs.name, *arguments]
        running = subprocess.Popen(
            command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            yield running
        finally:
            running.kill()
            running.wait()

    def readers_view(self) -> MemoryTopic:
        """Everything in the topic, as its readers judge it."""
        topic = MemoryTopic(PARTITIONS)
        with PartitionReader(self.runs.connections.kafka, "tests", 30) as reader:
            for number in range(PARTITIONS):
                _, end = reader.offsets(self.runs.name, number)
                for record in reader.records(self.runs.name, number, 0, end):
                    assert record.key is not None
                    assert record.value is not None
                    topic.keep(number, record.offset, record.key, record.value, list(record.headers))
        return topic

    def objects(self, ids: Sequence[str]) -> dict[str, tuple[bool, int, tuple[str, ...]]]:
        """Objects in the collection: whether they are deleted, their time in seconds, their parents."""
        known = self.sync.reached(self.sync.read_topic())
        found = read_current(self.sync.collection, known.t, [(TYPE, id_) for id_ in ids], WHO)
        rows = {id_: found[key].object for id_ in ids if (key := object_key(TYPE, id_)) in found}
        return {id_: (row.deleted, row.timestamp // 1_000, row.parents) for id_, row in rows.items()}


def send_corrections(name: str, connections: str, run: str, t: str) -> None:
    """What the process of ``send_killed`` does."""
    sync = open_sync(OpenPipeline(find_pipeline(name), Connections.load(Path(connections))))
    sync.send(sync.files.diff(run, int(t)))


def _line(id_: str, at: int, parents: Sequence[str] = ()) -> str:
    minutes, seconds = divmod(at, 60)
    timestamp = f"1970-01-01T00:{minutes:02d}:{seconds:02d}Z"
    fields: dict[str, Any] = {"timestamp": timestamp, "parents": list(parents), "type": TYPE, "id": id_}
    return json.dumps(fields)
