"""Choosing entities: the same ones wherever it is asked."""

import pytest

from tidemark.verification.selection import Entity, EntitySelection, Hashed, Listed, hashes_of

pytestmark = pytest.mark.unit

KEYS = [f"order-{number}" for number in range(1_000)]


def test_hashes_find_what_they_were_made_of_and_nothing_else() -> None:
    choice = Hashed.of([hashes_of("orders", KEYS[:300]), hashes_of("orders", KEYS[200:500])], seed=0)
    assert len(choice.hashes) == 500
    assert choice("orders", KEYS) == [True] * 500 + [False] * 500
    assert not any(choice("refunds", KEYS))


def test_a_sample_is_always_the_same_and_of_the_size_that_was_asked_for() -> None:
    every = Hashed.of([hashes_of("orders", KEYS, 7)], seed=7)
    chosen = every.sample(50)("orders", KEYS)
    assert sum(chosen) == 50
    assert Hashed.of([hashes_of("orders", KEYS[::-1], 7)], seed=7).sample(50)("orders", KEYS) == chosen


def test_another_seed_draws_another_sample() -> None:
    samples = [Hashed.of([hashes_of("orders", KEYS, seed)], seed).sample(50) for seed in (1, 2)]
    assert samples[0]("orders", KEYS) != samples[1]("orders", KEYS)


def test_a_sample_of_few_is_all_of_them() -> None:
    assert all(Hashed.of([hashes_of("orders", KEYS[:3])], 0).sample(50)("orders", KEYS[:3]))


def test_an_unknown_entity_selects_nothing() -> None:
    assert Hashed.of([], 0)("orders", ["k"]) == [False]


def test_a_list_is_by_topic_and_key() -> None:
    assert Listed(frozenset({Entity("orders", "k")}))("orders", ["k", "j"]) == [True, False]


@pytest.mark.parametrize(
    ("selection", "is_everything"),
    [
        (EntitySelection(), True),
        (EntitySelection(topics=("orders",)), True),
        (EntitySelection(sample=3), False),
        (EntitySelection(from_t=1), False),
        (EntitySelection(entities=(Entity("orders", "k"),)), False),
    ],
)
def test_what_is_everything(selection: EntitySelection, is_everything: bool) -> None:
    assert selection.is_everything is is_everything


def test_an_interval_has_both_ends() -> None:
    assert [EntitySelection(from_t=2, to_t=4).has_time(t) for t in range(1, 6)] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert EntitySelection(from_t=2).has_time(10**18)
