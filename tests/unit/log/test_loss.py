"""Losses: what Kafka no longer has is found, whole, and said in one phrase."""

import pytest
from tests.support.log_samples import given_kafka

from tidemark.log.model.binding import Offsets, Slice
from tidemark.log.model.loss import (
    Loss,
    LossKind,
    describe_losses,
    find_losses,
    find_losses_of,
    reached_after,
)

pytestmark = pytest.mark.unit

KNOWN = {"orders": "first orders", "refunds": "first refunds"}
BOUND = {("orders", 0): 5, ("orders", 1): 7, ("refunds", 0): 3}
ALL_THERE = {("orders", 0): Offsets(0, 9), ("orders", 1): Offsets(2, 7), ("refunds", 0): Offsets(3, 3)}

RETENTION = Loss(LossKind.RETENTION, "orders", 0, 5, 8)
TRUNCATED = Loss(LossKind.TRUNCATED, "orders", 1, 4, 7)


# Between what is bound and what Kafka holds now


def test_nothing_is_lost_while_kafka_has_what_comes_next():
    assert list(find_losses(BOUND, KNOWN, given_kafka(ALL_THERE))) == []


def test_a_beginning_behind_what_is_bound_has_taken_records_with_it():
    kafka = given_kafka(ALL_THERE | {("orders", 0): Offsets(8, 9)})
    assert list(find_losses(BOUND, KNOWN, kafka)) == [Loss(LossKind.RETENTION, "orders", 0, 5, 8)]


def test_an_end_before_what_is_bound_is_a_truncated_partition():
    kafka = given_kafka(ALL_THERE | {("orders", 1): Offsets(2, 4)})
    assert list(find_losses(BOUND, KNOWN, kafka)) == [Loss(LossKind.TRUNCATED, "orders", 1, 4, 7)]


def test_another_topic_under_the_name_loses_every_partition_that_was_bound():
    kafka = given_kafka(ALL_THERE, orders="second orders")
    assert list(find_losses(BOUND, KNOWN, kafka)) == [
        Loss(LossKind.RECREATED, "orders", 0, 5, 5, "second orders"),
        Loss(LossKind.RECREATED, "orders", 1, 7, 7, "second orders"),
    ]


@pytest.mark.parametrize(
    "offsets",
    [
        pytest.param(Offsets(0, 0), id="empty"),
        pytest.param(Offsets(0, 5), id="as long as the old one"),
        pytest.param(Offsets(8, 20), id="begins behind the old one"),
    ],
)
def test_offsets_of_another_topic_are_not_compared(offsets):
    kafka = given_kafka({("orders", 0): offsets}, orders="second orders")
    (loss,) = find_losses({("orders", 0): 5}, KNOWN, kafka)
    assert loss.kind is LossKind.RECREATED


def test_item_12_a_topic_accepted_as_made_again_that_is_yet_another_one_before_it_was_read_is_noticed():
    accepted = Loss(LossKind.RECREATED, "orders", 0, 5, 5, "second orders")
    reached, known = reached_after(BOUND, KNOWN, [accepted])
    assert list(find_losses(reached, known, given_kafka(ALL_THERE, orders="second orders"))) == []
    assert list(find_losses(reached, known, given_kafka(ALL_THERE, orders="third orders"))) == [
        Loss(LossKind.RECREATED, "orders", 0, 0, 0, "third orders"),
        Loss(LossKind.RECREATED, "orders", 1, 0, 0, "third orders"),
    ]


def test_losses_of_several_kinds_are_found_at_once_in_partition_order():
    offsets = {("orders", 0): Offsets(8, 9), ("orders", 1): Offsets(2, 4), ("refunds", 0): Offsets(0, 9)}
    assert list(find_losses(BOUND, KNOWN, given_kafka(offsets, refunds="second refunds"))) == [
        Loss(LossKind.RETENTION, "orders", 0, 5, 8),
        Loss(LossKind.TRUNCATED, "orders", 1, 4, 7),
        Loss(LossKind.RECREATED, "refunds", 0, 3, 3, "second refunds"),
    ]


def test_a_topic_that_is_not_there_has_no_known_loss():
    offsets = {place: there for place, there in ALL_THERE.items() if place[0] == "orders"}
    assert list(find_losses(BOUND, KNOWN, given_kafka(offsets))) == []


def test_a_partition_that_was_never_bound_has_lost_nothing():
    kafka = given_kafka(ALL_THERE | {("orders", 2): Offsets(70, 75)})
    assert list(find_losses(BOUND, KNOWN, kafka)) == []


def test_a_topic_bound_before_ids_were_kept_is_judged_by_its_offsets():
    kafka = given_kafka({("orders", 0): Offsets(0, 4)})
    assert list(find_losses({("orders", 0): 5}, {}, kafka)) == [Loss(LossKind.TRUNCATED, "orders", 0, 4, 5)]


# Of slices that are bound and not captured

SLICES = (Slice("orders", 0, 10, 20), Slice("orders", 1, 5, 7), Slice("refunds", 0, 0, 3))
SLICES_THERE = {("orders", 0): Offsets(0, 25), ("orders", 1): Offsets(5, 7), ("refunds", 0): Offsets(0, 9)}


def test_nothing_is_lost_of_slices_that_kafka_has_whole():
    assert list(find_losses_of(SLICES, KNOWN, given_kafka(SLICES_THERE))) == []


@pytest.mark.parametrize(
    ("offsets", "losses"),
    [
        pytest.param(Offsets(14, 25), [(LossKind.RETENTION, 10, 14)], id="the beginning"),
        pytest.param(Offsets(20, 25), [(LossKind.RETENTION, 10, 20)], id="all by retention"),
        pytest.param(Offsets(22, 25), [(LossKind.RETENTION, 10, 20)], id="more than was bound"),
        pytest.param(Offsets(0, 16), [(LossKind.TRUNCATED, 16, 20)], id="the end"),
        pytest.param(Offsets(0, 10), [(LossKind.TRUNCATED, 10, 20)], id="all by truncation"),
        pytest.param(
            Offsets(14, 16), [(LossKind.RETENTION, 10, 14), (LossKind.TRUNCATED, 16, 20)], id="both ends"
        ),
        pytest.param(
            Offsets(14, 14), [(LossKind.RETENTION, 10, 14), (LossKind.TRUNCATED, 14, 20)], id="nothing left"
        ),
    ],
)
def test_what_is_gone_of_a_slice(offsets, losses):
    kafka = given_kafka({("orders", 0): offsets})
    found = list(find_losses_of(SLICES[:1], KNOWN, kafka))
    assert found == [Loss(kind, "orders", 0, lower, upper) for kind, lower, upper in losses]


def test_a_partition_truncated_before_its_slice_says_where_it_ends():
    """Going on at the slice's beginning would pass by what is written between its end and there."""
    kafka = given_kafka({("orders", 0): Offsets(0, 6)})
    assert list(find_losses_of(SLICES[:1], KNOWN, kafka)) == [Loss(LossKind.TRUNCATED, "orders", 0, 6, 20)]


def test_a_topic_made_again_has_nothing_of_its_slices():
    kafka = given_kafka(SLICES_THERE, orders="second orders")
    assert list(find_losses_of(SLICES, KNOWN, kafka)) == [
        Loss(LossKind.RECREATED, "orders", 0, 10, 20, "second orders"),
        Loss(LossKind.RECREATED, "orders", 1, 5, 7, "second orders"),
    ]


def test_a_topic_that_is_gone_has_nothing_of_its_slices():
    offsets = {place: there for place, there in SLICES_THERE.items() if place[0] == "refunds"}
    assert list(find_losses_of(SLICES, KNOWN, given_kafka(offsets))) == [
        Loss(LossKind.DELETED, "orders", 0, 10, 20),
        Loss(LossKind.DELETED, "orders", 1, 5, 7),
    ]


def test_losses_of_several_slices_are_found_at_once():
    offsets = {("orders", 0): Offsets(14, 25), ("refunds", 0): Offsets(0, 1)}
    assert list(find_losses_of(SLICES, KNOWN, given_kafka(offsets))) == [
        Loss(LossKind.RETENTION, "orders", 0, 10, 14),
        Loss(LossKind.DELETED, "orders", 1, 5, 7),
        Loss(LossKind.TRUNCATED, "refunds", 0, 1, 3),
    ]


# Said


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (RETENTION, "orders/0: offsets 5 to 7 were removed before their capture"),
        (TRUNCATED, "orders/1: it ends at 4, but offsets below 7 are bound already"),
        (
            Loss(LossKind.RECREATED, "orders", 0, 5, 5, "second orders"),
            "orders/0: the topic was deleted and made again; it was read up to offset 5",
        ),
        (
            Loss(LossKind.RECREATED, "orders", 0, 5, 9, "second orders"),
            "orders/0: the topic was deleted and made again before the capture of offsets 5 to 8",
        ),
        (
            Loss(LossKind.DELETED, "orders", 0, 5, 9),
            "orders/0: the topic is gone, and offsets 5 to 8 were bound but not captured",
        ),
    ],
)
def test_every_kind_is_said_in_words(loss, text):
    assert str(loss) == text


def test_up_to_three_losses_are_said_whole():
    assert describe_losses([RETENTION, TRUNCATED, RETENTION]) == f"{RETENTION}; {TRUNCATED}; {RETENTION}"


def test_of_many_losses_three_are_said_and_the_others_counted():
    assert describe_losses([RETENTION] * 50) == f"{RETENTION}; {RETENTION}; {RETENTION}; and 47 more"
