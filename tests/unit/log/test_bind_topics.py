"""bind: topics and partitions that come, go, and come back under the same name."""

import pytest
from tests.support.log_samples import given_kafka, mark_published

from tidemark.consensus.memory import MemoryConsensus
from tidemark.log.bind import OffsetsLost, bind
from tidemark.log.model.binding import Available, Binding, Offsets, Slice
from tidemark.log.model.loss import Loss, LossKind
from tidemark.log.state.control import LogControl

pytestmark = pytest.mark.unit

EU, US = {("eu.orders", 0): Offsets(0, 5)}, {("us.orders", 0): Offsets(0, 3)}


class Source:
    """Binds and publishes whatever Kafka holds, one second after the other."""

    def __init__(self) -> None:
        self.control = LogControl(MemoryConsensus(), "shop")
        self.runs = 0

    def bind(self, kafka: Available) -> Binding | None:
        self.runs += 1
        binding = bind(self.control, kafka, 100, 1_000_000 * self.runs, f"run-{self.runs}")
        if binding is not None:
            mark_published(self.control, binding)
        return binding


@pytest.fixture
def source() -> Source:
    return Source()


# What a binding knows of its topics


def test_a_binding_keeps_the_ids_of_the_topics_it_takes_from(source):
    binding = source.bind(given_kafka(EU | US))
    assert binding.topic_ids == {"eu.orders": "first eu.orders", "us.orders": "first us.orders"}


def test_a_binding_keeps_no_id_of_a_topic_it_takes_nothing_from(source):
    source.bind(given_kafka(EU | US))
    assert source.bind(given_kafka(EU | {("us.orders", 0): Offsets(0, 4)})).topic_ids == {
        "us.orders": "first us.orders"
    }


def test_a_topic_without_an_id_is_bound_all_the_same(source):
    binding = source.bind(Available(EU, {}))
    assert (binding.slices, binding.topic_ids) == ((Slice("eu.orders", 0, 0, 5),), {})


def test_an_id_that_was_not_known_is_kept_from_the_next_binding_on(source):
    source.bind(Available(EU, {}))
    source.bind(given_kafka({("eu.orders", 0): Offsets(0, 6)}))
    assert source.control.bindings_head().topic_ids == {"eu.orders": "first eu.orders"}


# Partitions


def test_a_partition_that_appears_later_starts_at_its_earliest_offset(source):
    source.bind(given_kafka(EU))
    appeared = source.bind(given_kafka(EU | {("eu.orders", 1): Offsets(70, 75)}))
    assert appeared.slices == (Slice("eu.orders", 1, 70, 75),)


def test_a_partition_that_appears_later_gets_the_ids_after_all_the_others(source):
    first = source.bind(given_kafka({("eu.orders", 1): Offsets(0, 5)}))
    appeared = source.bind(given_kafka({("eu.orders", 0): Offsets(0, 2), ("eu.orders", 1): Offsets(0, 5)}))
    assert (first.end, appeared.base, appeared.id_of("eu.orders", 0, 0)) == (4, 5, 5)


def test_a_partition_that_appeared_goes_on_like_the_others(source):
    source.bind(given_kafka(EU))
    source.bind(given_kafka(EU | {("eu.orders", 1): Offsets(70, 75)}))
    third = source.bind(given_kafka({("eu.orders", 0): Offsets(0, 6), ("eu.orders", 1): Offsets(70, 77)}))
    assert third.slices == (Slice("eu.orders", 0, 5, 6), Slice("eu.orders", 1, 75, 77))


def test_an_empty_partition_that_was_trimmed_before_it_was_bound_has_lost_nothing(source):
    source.bind(given_kafka(EU | {("eu.orders", 1): Offsets(0, 0)}))
    later = source.bind(given_kafka(EU | {("eu.orders", 1): Offsets(4, 6)}))
    assert later.slices == (Slice("eu.orders", 1, 4, 6),)


# Topics of a prefix


def test_a_topic_that_appears_later_starts_at_its_earliest_offset(source):
    source.bind(given_kafka(EU))
    assert source.bind(given_kafka(EU | {("us.orders", 0): Offsets(2, 9)})).slices == (
        Slice("us.orders", 0, 2, 9),
    )


def test_a_topic_that_vanishes_keeps_no_run_waiting(source):
    source.bind(given_kafka(EU | US))
    assert source.bind(given_kafka({("us.orders", 0): Offsets(0, 4)})).slices == (
        Slice("us.orders", 0, 3, 4),
    )


def test_a_topic_that_vanished_is_remembered(source):
    source.bind(given_kafka(EU | US))
    source.bind(given_kafka({("us.orders", 0): Offsets(0, 4)}))
    head = source.control.bindings_head()
    assert head.reached == {("eu.orders", 0): 5, ("us.orders", 0): 4}
    assert head.topic_ids == {"eu.orders": "first eu.orders", "us.orders": "first us.orders"}


def test_the_same_topic_seen_again_goes_on_where_it_was(source):
    source.bind(given_kafka(EU | US))
    source.bind(given_kafka(US))
    assert source.bind(given_kafka({("eu.orders", 0): Offsets(0, 7)} | US)).slices == (
        Slice("eu.orders", 0, 5, 7),
    )


def test_another_topic_under_a_vanished_one_s_name_is_refused(source):
    source.bind(given_kafka(EU | US))
    source.bind(given_kafka(US))
    with pytest.raises(OffsetsLost) as refusal:
        source.bind(given_kafka(EU | US, **{"eu.orders": "second eu.orders"}))
    assert refusal.value.losses == (Loss(LossKind.RECREATED, "eu.orders", 0, 5, 5, "second eu.orders"),)


# A topic made again


@pytest.mark.parametrize(
    "offsets",
    [
        pytest.param(Offsets(0, 0), id="still empty"),
        pytest.param(Offsets(0, 5), id="with as many records as before"),
        pytest.param(Offsets(0, 50), id="with more records than before"),
    ],
)
def test_a_topic_made_again_is_noticed_whatever_it_holds(source, offsets):
    source.bind(given_kafka(EU))
    with pytest.raises(OffsetsLost):
        source.bind(given_kafka({("eu.orders", 0): offsets}, **{"eu.orders": "second eu.orders"}))


def test_a_topic_made_again_before_it_was_ever_bound_is_no_loss(source):
    source.bind(given_kafka(US | {("eu.orders", 0): Offsets(0, 0)}))
    binding = source.bind(given_kafka(US | EU, **{"eu.orders": "second eu.orders"}))
    assert binding.topic_ids == {"eu.orders": "second eu.orders"}
