"""In a cluster of several nodes, rows that share a batch share their replicas."""

import struct
from typing import Any

import pytest
from cassandra import ConsistencyLevel
from cassandra.cqltypes import UTF8Type
from cassandra.protocol import ColumnMetadata
from cassandra.query import PreparedStatement
from hypothesis import given
from hypothesis import strategies as st
from tests.support.fake_cluster import PROTOCOL, Arrived, FakeCluster, make_statement

from tidemark.cassandra import cells
from tidemark.cassandra.bulk.replicas import ReplicaSets
from tidemark.cassandra.bulk.writer import BulkStatement, BulkWriter

pytestmark = pytest.mark.unit

KEYED = make_statement(keys=[0])
KEYLESS = make_statement("keyless")
KEYS = [f"entity-{number}" for number in range(200)]


def write(cluster: FakeCluster, keys: list[str], statement: BulkStatement = KEYED) -> list[Arrived]:
    with BulkWriter(cluster.session, ConsistencyLevel.ONE) as writer:
        for key in keys:
            writer.add(statement, cells.text(key))
    return cluster.arrived


def replicas(cluster: FakeCluster, row: bytes) -> frozenset[Any]:
    return frozenset(cluster.metadata.get_replicas("journal", row[4:]))


def test_the_rows_of_a_batch_have_the_same_replicas(large_cluster: FakeCluster) -> None:
    for batch in write(large_cluster, KEYS):
        assert len({replicas(large_cluster, row) for row in batch.rows}) == 1


def test_a_batch_goes_to_one_of_its_replicas(large_cluster: FakeCluster) -> None:
    for batch in write(large_cluster, KEYS):
        assert batch.host in replicas(large_cluster, batch.rows[0])


def test_there_are_no_more_batches_than_replica_sets(large_cluster: FakeCluster) -> None:
    assert len(write(large_cluster, KEYS[:100])) == 4


def test_no_row_is_lost_by_grouping(large_cluster: FakeCluster) -> None:
    rows = [row for batch in write(large_cluster, KEYS) for row in batch.rows]
    assert sorted(rows) == sorted(cells.text(key) for key in KEYS)


def test_the_callers_routing_key_is_believed(large_cluster: FakeCluster) -> None:
    with BulkWriter(large_cluster.session, ConsistencyLevel.ONE) as writer:
        for key in KEYS:
            writer.add(KEYED, cells.text(key), routing_key=b"entity-0")
    hosts = {batch.host for batch in large_cluster.arrived}
    assert hosts <= replicas(large_cluster, cells.text("entity-0"))


def test_rows_without_a_key_share_batches(large_cluster: FakeCluster) -> None:
    assert [len(batch.rows) for batch in write(large_cluster, KEYS[:50], KEYLESS)] == [50]


def test_a_single_node_needs_no_token(cluster: FakeCluster) -> None:
    class Untouchable:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"the token map was asked for {name}")

    cluster.metadata.token_map = Untouchable()
    assert len(write(cluster, KEYS[:50])) == 1


def test_an_unknown_keyspace_has_one_group(large_cluster: FakeCluster) -> None:
    del large_cluster.metadata.keyspaces["journal"]
    assert len(write(large_cluster, KEYS[:50])) == 1


def test_without_a_token_map_there_is_one_group(large_cluster: FakeCluster) -> None:
    large_cluster.metadata.token_map = None
    assert len(write(large_cluster, KEYS[:50])) == 1


@given(st.binary(min_size=1))
def test_replicas_are_those_the_driver_names(key: bytes) -> None:
    cluster = FakeCluster(nodes=4, replication=2)
    found = ReplicaSets(cluster.metadata).of("journal", key)
    assert found == frozenset(cluster.metadata.get_replicas("journal", key))


def test_a_changed_ring_is_followed() -> None:
    cluster = FakeCluster(nodes=2)
    sets = ReplicaSets(cluster.metadata)
    sets.of("journal", b"entity-0")
    one, other = cluster.hosts
    for owner, elsewhere in ((one, other), (other, one)):
        cluster.place({owner: 2**63 - 1, elsewhere: -(2**63)})
        assert sets.of("journal", b"entity-0") == {owner}


def test_a_changed_replication_is_followed() -> None:
    cluster = FakeCluster(nodes=4)
    sets = ReplicaSets(cluster.metadata)
    sets.of("journal", b"entity-0")
    keyspace = cluster.metadata.keyspaces["journal"]
    keyspace.replication_strategy = type(keyspace.replication_strategy)({"replication_factor": "3"})
    cluster.metadata.token_map.rebuild_keyspace("journal")
    assert len(sets.of("journal", b"entity-0")) == 3


@given(st.lists(st.text(min_size=1), min_size=4, max_size=4), st.sampled_from([[1], [0, 2], [3, 1, 0]]))
def test_a_routing_key_is_the_drivers(values: list[str], positions: list[int]) -> None:
    columns = [ColumnMetadata("journal", "rows", f"column{number}", UTF8Type) for number in range(4)]
    prepared = PreparedStatement(columns, b"id", positions, "INSERT", None, PROTOCOL, [], None)
    row = b"".join(cells.texts(values))
    assert BulkStatement.of(prepared).routing_key(row) == prepared.bind(values).routing_key


def test_absent_cells_before_the_key_are_stepped_over() -> None:
    statement = make_statement(keys=[2], markers=3)
    assert statement.routing_key(cells.UNSET + cells.NULL + cells.text("a")) == b"a"


def test_a_key_that_is_too_long_for_routing_is_refused() -> None:
    statement = make_statement(keys=[0, 1], markers=2)
    with pytest.raises(struct.error):
        statement.routing_key(cells.text("a" * 65_536) + cells.text("b"))
