"""How large a table is, from what one node counts."""

from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.cassandra.size import PartitionerRefused, estimated_bytes, ring_tokens
from tidemark.cassandra.token_ranges import HIGHEST, LOWEST

pytestmark = pytest.mark.unit


def session_with(*estimates: tuple[int, int, int, int]) -> Any:
    names = ("range_start", "range_end", "mean_partition_size", "partitions_count")
    rows = [SimpleNamespace(**dict(zip(names, each, strict=True))) for each in estimates]
    return SimpleNamespace(execute=lambda *_: SimpleNamespace(all=lambda: rows))


@pytest.mark.parametrize(
    ("estimates", "expected"),
    [
        pytest.param([], 0, id="unknown"),
        pytest.param([(LOWEST, HIGHEST, 0, 0)], 0, id="counted as nothing"),
        pytest.param([(LOWEST, HIGHEST, 100, 7)], 700, id="one node has all"),
        pytest.param([(LOWEST, 0, 100, 7), (0, HIGHEST, 10, 1)], 710, id="in two ranges"),
        pytest.param([(0, HIGHEST, 100, 7)], 1400, id="half of it"),
        pytest.param([(2**62, -(2**62), 100, 7)], 1400, id="half of it, around the end"),
    ],
)
def test_the_size_of_a_table(estimates: list[tuple[int, int, int, int]], expected: int) -> None:
    assert estimated_bytes(session_with(*estimates), "shop", "events") == pytest.approx(expected, abs=1)


def cluster_with(partitioner: str, tokens: list[int]) -> Any:
    ring = SimpleNamespace(ring=[SimpleNamespace(value=token) for token in tokens])
    return SimpleNamespace(
        cluster=SimpleNamespace(metadata=SimpleNamespace(partitioner=partitioner, token_map=ring))
    )


def test_tokens_are_those_of_the_nodes() -> None:
    assert ring_tokens(cluster_with("org.apache.cassandra.dht.Murmur3Partitioner", [1, 2])) == [1, 2]


def test_another_partitioner_is_refused() -> None:
    with pytest.raises(PartitionerRefused, match="RandomPartitioner"):
        ring_tokens(cluster_with("org.apache.cassandra.dht.RandomPartitioner", [1]))
