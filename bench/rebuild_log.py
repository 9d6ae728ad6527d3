"""The log of the measurements of rebuilds: bindings of messages of 300 bytes, published without Kafka.

Values are JSON objects, so that any kind of writer takes them; a key is always in the same partition.
"""

import json
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.log.files.parquet import LOG_SCHEMA, LogFolder
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.model.captured import Captured
from tidemark.log.publish import publish
from tidemark.log.state.control import LogControl

TOPIC, PARTITIONS = "orders", 4
KEYS_A_PARTITION = 25_000
SEGMENT_BYTES = 256 * 2**20
FIRST, STEP = 2 * 10**15, 10**9


@dataclass
class GrowingLog:
    """A log that grows by a binding at a time.

    Attributes:
        control: Its control plane.
        folder: Its files.
    """

    control: LogControl
    folder: LogFolder
    _bodies: dict[tuple[int, int], pa.Table] = field(default_factory=dict)
    """What messages consist of besides their places, by their number and partition: made once, because it
    takes long."""

    def add(self, messages: int) -> Binding:
        """Bind, capture, audit and publish so many further messages, as many in each partition."""
        head, each = self.control.bindings_head(), messages // PARTITIONS
        lower = head.reached.get((TOPIC, 0), 0)
        slices = tuple(Slice(TOPIC, one, lower, lower + each) for one in range(PARTITIONS))
        t = FIRST if head.newest is None else head.newest + STEP
        binding = Binding(t, lower * PARTITIONS, slices, f"bench-{t}")
        area, captured = self.folder.new_area(t), []
        for s in slices:
            path = f"{area}/{s.partition}.parquet"
            pq.write_table(self._table(binding, s), self.folder.area_at(path), compression="zstd")
            captured.append(self.folder.adopt_file(binding, [s], path))
        self.folder.remove_area(area)
        found = Captured(t, tuple(one for one in captured if one), rows_read=each * PARTITIONS)
        self.control.add_binding(head, binding)
        self.folder.write_captured(found)
        self.folder.write_audit(AuditRecord(t, found.digest, ()))
        publish(self.control, self.folder, binding, SEGMENT_BYTES, t)
        return binding

    def _table(self, binding: Binding, s: Slice) -> pa.Table:
        count, offsets = s.upper - s.lower, np.arange(s.lower, s.upper)
        ids = offsets + binding.shifts[s.topic, s.partition]
        if (count, s.partition) not in self._bodies:
            self._bodies[count, s.partition] = _bodies(count, s.partition)
        body = self._bodies[count, s.partition]
        places = {
            "id": ids,
            "t": np.full(count, binding.t),
            "write_time": ids - binding.base + binding.t,
            "partition": np.full(count, s.partition, dtype=np.int32),
            "offset": offsets,
        }
        columns = {**places, **{name: body[name] for name in body.column_names}}
        return pa.table({name: columns[name] for name in LOG_SCHEMA.names}).cast(LOG_SCHEMA)


def _bodies(count: int, partition: int) -> pa.Table:
    return pa.table(
        {
            "topic": [TOPIC] * count,
            "timestamp": np.full(count, 1_794_000_000_000),
            "timestamp_type": np.zeros(count, dtype=np.int32),
            "key": pa.array([_key(number, partition) for number in range(count)], pa.binary()),
            "value": pa.array([_value(number) for number in range(count)], pa.binary()),
            "headers": pa.nulls(count, LOG_SCHEMA.field("headers").type),
            "namespace": [TOPIC] * count,
        }
    )


def _key(number: int, partition: int) -> bytes:
    return b"order-%d-%06d" % (partition, number % KEYS_A_PARTITION)


def _value(number: int) -> bytes:
    """Its hexadecimal digits keep zstd from making nothing of it."""
    digits = f"{number * 2654435761 % 2**61:0128x}"
    order = {"owner": f"owner {number % 10_000}", "total": number % 10**6 / 100, "lines": number % 90}
    return json.dumps({**order, "note": (digits * 2)[:230]}).encode()
