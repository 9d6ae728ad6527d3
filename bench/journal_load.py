"""The load of the journal's measurements: appends of one 200-byte JSON event, entities in turn."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Producer
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from tidemark.connections import KafkaConnection
from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.model.captured import Captured

TOPIC = "bench"
HEADER = (
    '{"append":{"range":{"from":%d,"to":%d},"origin":"bench","version":"1.0",'
    '"payloadType":"json","metadata":{}}}'
)
EVENT = '{"events":[{"seqNr":%d,"tags":[],"payloadType":"json","payload":%s}],"metadata":{}}'
PAYLOAD = (
    '{"order":"%s","customer":"%032x","total":%d.25,"currency":"EUR","lines":[{"sku":"A-%d","count":%d}],'
    '"note":"delivered to the front door, please ring twice %06d"}'
)


@dataclass(frozen=True)
class Load:
    """A number of appends over a number of entities; an entity is always in the same partition."""

    appends: int = 1_000_000
    entities: int = 100_000
    partitions: int = 4
    first: int = 0
    """The number of appends of this load that were made before."""
    prefix: str = "order"
    """The prefix of the keys."""

    def of_partition(self, partition: int) -> Iterator[tuple[bytes, bytes, bytes]]:
        """Key, header and value of the appends of one partition, in their order."""
        for number in range(self.first + partition, self.first + self.appends, self.partitions):
            entity, seq_nr = number % self.entities, number // self.entities + 1
            key = f"{self.prefix}-{entity:06d}"
            payload = PAYLOAD % (key, number * 2654435761, number % 900, entity, seq_nr, number % 1_000_000)
            yield key.encode(), (HEADER % (seq_nr, seq_nr)).encode(), (EVENT % (seq_nr, payload)).encode()


def log_table(
    binding: Binding,
    s: Slice,
    keys: Sequence[bytes],
    actions: Sequence[bytes],
    values: Sequence[bytes | None],
) -> pa.Table:
    """The messages of a slice as a table of the log; ``actions`` are their headers."""
    count, offsets = len(keys), np.arange(s.lower, s.upper)
    ids = offsets + binding.shifts[s.topic, s.partition]
    return pa.table(
        {
            "id": ids,
            "t": np.full(count, binding.t),
            "write_time": ids - binding.base + binding.t,
            "topic": [s.topic] * count,
            "partition": np.full(count, s.partition, dtype=np.int32),
            "offset": offsets,
            "timestamp": 1_794_000_000_000 + offsets,
            "timestamp_type": np.zeros(count, dtype=np.int32),
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": _headers(actions),
            "namespace": [s.topic] * count,
        }
    ).cast(LOG_SCHEMA)


def _headers(actions: Sequence[bytes]) -> pa.Array:
    """One header per message, built by column: a Python dictionary for each would dominate the time."""
    count = len(actions)
    fields = list(LOG_SCHEMA.field("headers").type.value_type)
    own = pa.StructArray.from_arrays(
        [pa.repeat("journal.action", count), pa.array(actions, pa.binary())], fields=fields
    )
    return pa.ListArray.from_arrays(pa.array(range(count + 1), pa.int32()), own)


def make_log(root: str, load: Load, t: int) -> Binding:
    """A captured binding with the load, audited but not yet published."""
    each, lower = load.appends // load.partitions, load.first // load.partitions
    slices = tuple(Slice(TOPIC, partition, lower, lower + each) for partition in range(load.partitions))
    binding, folder = Binding(t, load.first, slices, f"bench-{t}"), LogFolder("bench", root)
    area, captured = folder.new_area(binding.t), []
    for s in slices:
        keys, headers, values = zip(*load.of_partition(s.partition), strict=True)
        table = log_table(binding, s, keys, headers, values)
        path = f"{area}/{s.partition}.parquet"
        pq.write_table(table, folder.area_at(path), compression="zstd", row_group_size=65_536)
        captured.append(folder.adopt_file(binding, [s], path))
    folder.remove_area(area)
    found = Captured(binding.t, tuple(one for one in captured if one), rows_read=load.appends)
    folder.write_captured(found)
    folder.write_audit(AuditRecord(binding.t, found.digest, ()))
    return binding


def fill_topic(kafka: KafkaConnection, load: Load, topic: str = TOPIC) -> None:
    """Send a load; a load that begins at 0 creates its topic."""
    if load.first == 0:
        with KafkaAdminClient(**kafka.client_options()) as admin:
            admin.create_topics([NewTopic(topic, load.partitions, 1)])
    options = {
        "linger.ms": 20,
        "compression.type": "lz4",
        "enable.idempotence": True,
    }  # a retry keeps the order
    producer = Producer({"bootstrap.servers": kafka.servers, **options})
    for partition in range(load.partitions):
        for key, header, value in load.of_partition(partition):
            while True:
                try:
                    producer.produce(
                        topic, value, key, partition=partition, headers=[("journal.action", header)]
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.flush()
