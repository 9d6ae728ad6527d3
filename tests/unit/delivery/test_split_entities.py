"""Entities that begin in two Kafka partitions of one binding are noticed by who compares what parts began."""

import numpy as np
import pytest

from tidemark.delivery.split_entities import BYTES_AN_ENTITY, Begun, begun, is_any_split

pytestmark = pytest.mark.unit


def test_an_entity_costs_eight_bytes():
    ((_, _, entities),) = begun("orders", 0, ["a", "b", "an entity with a long name"])
    assert len(entities) == 3 * BYTES_AN_ENTITY


def test_who_began_nothing_says_nothing():
    assert begun("orders", 0, []) == ()


def test_an_entity_of_two_partitions_is_split():
    assert is_any_split([*begun("orders", 0, "abc"), *begun("orders", 1, "cde")])


@pytest.mark.parametrize(
    "parts",
    [
        [],
        begun("orders", 0, "abc"),
        [*begun("orders", 0, "abc"), *begun("orders", 1, "def")],
        [*begun("orders", 0, "abc"), *begun("refunds", 1, "abc")],
        [*begun("orders", 0, "abc"), *begun("orders", 0, "abc"), *begun("orders", 1, "def")],
    ],
    ids=["nothing", "one partition", "other entities", "other topics", "parts of one partition"],
)
def test_nothing_else_is(parts: list[Begun]):
    assert not is_any_split(parts)


def test_a_million_entities_are_compared():
    numbers = np.arange(1_000_000, dtype=np.uint64)
    halves = [Begun("orders", 0, numbers[::2].tobytes()), Begun("orders", 1, numbers[1::2].tobytes())]
    assert not is_any_split(halves)
    assert is_any_split([*halves, Begun("orders", 2, numbers[:1].tobytes())])
