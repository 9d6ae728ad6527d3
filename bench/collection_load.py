"""The load of the collection's measurements: accounts of about 150 bytes as JSON, keys in turn."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow.parquet as pq
from journal_load import log_table

from tidemark.collection.model.row import CollectionRow
from tidemark.collection.model.rows import rows_of
from tidemark.collection.tables.layout import CollectionPlace
from tidemark.connections import CassandraConnection
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.model.captured import Captured
from tidemark.writers.collection.kind import CollectionDeclaration
from tidemark.writers.collection.places import place_of
from tidemark.writers.collection.writer import CollectionWriter

TOPIC, WRITER, PARTITIONS = "accounts", "accounts", 4


@dataclass(frozen=True)
class Load:
    """A number of upserts over a number of keys; a key is always in the same partition.

    Attributes:
        messages: The number of upserts.
        keys: The number of keys.
        first: The number of upserts that were made before.
        account: What the keys begin with.
    """

    messages: int
    keys: int
    first: int = 0
    account: str = "account"

    def binding(self, t: int) -> Binding:
        """The binding that holds the load."""
        each, lower = self.messages // PARTITIONS, self.first // PARTITIONS
        slices = tuple(Slice(TOPIC, one, lower, lower + each) for one in range(PARTITIONS))
        return Binding(t, self.first, slices, f"bench-{t}")

    def of_partition(self, partition: int) -> Iterator[tuple[bytes, bytes]]:
        """Key and value of the messages of one partition, in their order."""
        for number in range(self.first + partition, self.first + self.messages, PARTITIONS):
            key = number % self.keys
            account = {
                "owner": f"owner {key}",
                "balance": number % 10**6 / 100,
                "visits": number,
                "note": f"message {number} of the account {key}, as a person wrote it",
            }
            yield f"{self.account}-{key:08d}".encode(), json.dumps(account).encode()


def declared_in(keyspace: str) -> CollectionDeclaration:
    """The writer, as a pipeline's file declares it."""
    return CollectionDeclaration.model_validate(
        {
            "name": WRITER,
            "kind": "collection",
            "keyspace": keyspace,
            "envelope": "upsert",
            "key": {"id": "text"},
            "columns": {"owner": "text", "balance": "decimal", "visits": "int", "note": "text"},
        },
        context={},
    )


def place_in(keyspace: str) -> CollectionPlace:
    """Its tables."""
    return place_of("bench", declared_in(keyspace))


def connection_at(port: int) -> CassandraConnection:
    """The Cassandra of the measurement."""
    return CassandraConnection(hosts=("127.0.0.1",), port=port)


def rows_of_load(load: Load, binding: Binding, partitions: list[int]) -> list[CollectionRow]:
    """The rows of some partitions, in the order of their messages."""
    rules = CollectionWriter("bench", declared_in("unused"), connection_at(1)).rules
    found: list[CollectionRow] = []
    for s in binding.slices:
        if s.partition in partitions:
            keys, values = zip(*load.of_partition(s.partition), strict=True)
            table = log_table(binding, s, keys, [b""] * len(keys), values)
            for batch in table.to_batches(20_000):
                found += rows_of(batch, rules).rows
    return found


def make_log(root: str, load: Load, t: int) -> Binding:
    """A captured binding with the load, audited but not yet published."""
    binding, folder = load.binding(t), LogFolder("bench", root)
    area, captured = folder.new_area(binding.t), []
    for s in binding.slices:
        keys, values = zip(*load.of_partition(s.partition), strict=True)
        path = f"{area}/{s.partition}.parquet"
        table = log_table(binding, s, keys, [b""] * len(keys), values)
        pq.write_table(table, folder.area_at(path), compression="zstd", row_group_size=65_536)
        captured.append(folder.adopt_file(binding, [s], path))
    folder.remove_area(area)
    found = Captured(binding.t, tuple(one for one in captured if one), rows_read=load.messages)
    folder.write_captured(found)
    folder.write_audit(AuditRecord(binding.t, found.digest, ()))
    return binding
