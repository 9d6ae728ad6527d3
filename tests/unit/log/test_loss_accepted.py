"""Accepted losses: what is left to read, where the source goes on, and the record that stays for ever."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.log_samples import given_binding, given_kafka

from tidemark.log.model.binding import Offsets, Slice
from tidemark.log.model.loss import (
    AcceptedLoss,
    Loss,
    LossKind,
    find_losses_of,
    loss_from,
    reached_after,
    readable_slices,
)

pytestmark = pytest.mark.unit

BINDING = given_binding(2_000, 100, ("orders", 0, 10, 20), ("orders", 1, 5, 7))
KNOWN = {"orders": "first orders", "refunds": "first refunds"}
FEW = settings(max_examples=40, deadline=None, database=None)


def given_accepted(*losses: Loss, t: int | None = 2_000) -> list[AcceptedLoss]:
    return [AcceptedLoss(loss, t, 99, "ann", "known", 5_000, found=4_000) for loss in losses]


def given_loss(kind: LossKind, lower: int, upper: int, partition: int = 0) -> Loss:
    return Loss(kind, "orders", partition, lower, upper)


# What is left to read


def test_a_binding_that_lost_nothing_is_read_whole():
    assert readable_slices(BINDING, []) == BINDING.slices


@pytest.mark.parametrize(
    ("losses", "left"),
    [
        pytest.param([given_loss(LossKind.RETENTION, 10, 14)], [(14, 20)], id="the beginning is gone"),
        pytest.param([given_loss(LossKind.TRUNCATED, 16, 20)], [(10, 16)], id="the end is gone"),
        pytest.param(
            [given_loss(LossKind.RETENTION, 10, 14), given_loss(LossKind.TRUNCATED, 16, 20)],
            [(14, 16)],
            id="both ends are gone",
        ),
        pytest.param(
            [given_loss(LossKind.RETENTION, 10, 12), given_loss(LossKind.RETENTION, 12, 15)],
            [(15, 20)],
            id="the beginning, twice",
        ),
        pytest.param(
            [given_loss(LossKind.TRUNCATED, 18, 20), given_loss(LossKind.TRUNCATED, 13, 18)],
            [(10, 13)],
            id="the end, twice",
        ),
        pytest.param([given_loss(LossKind.RETENTION, 10, 20)], [], id="removed"),
        pytest.param([given_loss(LossKind.TRUNCATED, 10, 20)], [], id="truncated"),
        pytest.param([given_loss(LossKind.TRUNCATED, 6, 20)], [], id="truncated before the slice"),
        pytest.param([given_loss(LossKind.RECREATED, 10, 20)], [], id="made again"),
        pytest.param([given_loss(LossKind.DELETED, 10, 20)], [], id="deleted"),
        pytest.param(
            [given_loss(LossKind.RETENTION, 10, 14), given_loss(LossKind.DELETED, 14, 20)],
            [],
            id="removed, then deleted",
        ),
    ],
)
def test_what_is_left_of_a_slice(losses, left):
    slices = [Slice("orders", 0, *ends) for ends in left]
    assert readable_slices(BINDING, given_accepted(*losses)) == (*slices, Slice("orders", 1, 5, 7))


def test_nothing_is_left_of_a_binding_that_lost_every_slice():
    losses = [given_loss(LossKind.DELETED, 10, 20), given_loss(LossKind.DELETED, 5, 7, partition=1)]
    assert readable_slices(BINDING, given_accepted(*losses)) == ()


@pytest.mark.parametrize("t", [None, 1_000, 3_000])
def test_losses_of_other_bindings_take_nothing(t):
    losses = given_accepted(given_loss(LossKind.RETENTION, 10, 14), t=t)
    assert readable_slices(BINDING, losses) == BINDING.slices


def test_losses_of_other_topics_take_nothing():
    losses = given_accepted(Loss(LossKind.RETENTION, "refunds", 0, 10, 14))
    assert readable_slices(BINDING, losses) == BINDING.slices


@FEW
@given(
    st.lists(st.tuples(st.integers(0, 25), st.integers(0, 25)).map(sorted), max_size=4),
    st.randoms(use_true_random=False),
)
def test_what_is_left_is_what_kafka_had_at_every_look(looks, random):
    """However often something more is gone, and in whatever order the acceptances are read."""
    accepted: list[AcceptedLoss] = []
    left = set(range(10, 20))
    for earliest, latest in looks:
        kafka = given_kafka({("orders", 0): Offsets(earliest, latest), ("orders", 1): Offsets(5, 7)})
        losses = find_losses_of(readable_slices(BINDING, accepted), KNOWN, kafka)
        accepted += given_accepted(*losses)
        left &= set(range(earliest, latest))
    random.shuffle(accepted)
    slices = [s for s in readable_slices(BINDING, accepted) if s.partition == 0]
    assert {offset for s in slices for offset in range(s.lower, s.upper)} == left


# Where the source goes on

REACHED = {("orders", 0): 20, ("orders", 1): 7, ("refunds", 0): 3}


def test_behind_removed_offsets():
    losses = [given_loss(LossKind.RETENTION, 20, 25)]
    assert reached_after(REACHED, KNOWN, losses) == (REACHED | {("orders", 0): 25}, KNOWN)


def test_where_it_was_when_offsets_were_removed_that_are_bound_already():
    losses = [given_loss(LossKind.RETENTION, 10, 14)]
    assert reached_after(REACHED, KNOWN, losses) == (REACHED, KNOWN)


def test_at_the_end_of_a_truncated_partition():
    losses = [given_loss(LossKind.TRUNCATED, 16, 20)]
    assert reached_after(REACHED, KNOWN, losses) == (REACHED | {("orders", 0): 16}, KNOWN)


@pytest.mark.parametrize(
    "losses",
    [
        pytest.param([given_loss(LossKind.RECREATED, 20, 20), given_loss(LossKind.RECREATED, 7, 7, 1)]),
        pytest.param([given_loss(LossKind.RECREATED, 10, 20)]),
        pytest.param([given_loss(LossKind.DELETED, 10, 20)]),
    ],
    ids=["made again", "made again, one partition not captured", "gone"],
)
def test_at_the_beginning_of_every_partition_of_another_topic(losses):
    assert reached_after(REACHED, KNOWN, losses) == ({("refunds", 0): 3}, {"refunds": "first refunds"})


def test_several_losses_move_several_partitions():
    losses = [given_loss(LossKind.RETENTION, 20, 25), given_loss(LossKind.TRUNCATED, 4, 7, partition=1)]
    assert reached_after(REACHED, KNOWN, losses) == (
        {("orders", 0): 25, ("orders", 1): 4, ("refunds", 0): 3},
        KNOWN,
    )


def test_what_was_given_stays_as_it_was():
    reached, known = dict(REACHED), dict(KNOWN)
    reached_after(reached, known, [given_loss(LossKind.DELETED, 10, 20)])
    assert (reached, known) == (REACHED, KNOWN)


# The record

NUMBERS = st.integers(0, 2**62)
LOSSES = st.builds(
    Loss,
    kind=st.sampled_from(LossKind),
    topic=st.text(min_size=1),
    partition=st.integers(0, 2**31 - 1),
    lower=NUMBERS,
    upper=NUMBERS,
    topic_id=st.none() | st.text(),
)
ACCEPTED = st.builds(
    AcceptedLoss,
    loss=LOSSES,
    t=st.none() | NUMBERS,
    after=st.integers(-1, 2**62),
    who=st.text(),
    reason=st.text(),
    at=NUMBERS,
    found=NUMBERS,
)


@FEW
@given(ACCEPTED)
def test_an_accepted_loss_comes_back_from_its_row(accepted):
    assert AcceptedLoss.from_json(accepted.to_json()) == accepted


def test_a_loss_comes_back_with_its_kind():
    row = {"kind": "truncated", "topic": "orders", "partition": 0, "lower": 4, "upper": 7, "topic_id": None}
    loss = loss_from(row)
    assert loss == given_loss(LossKind.TRUNCATED, 4, 7)
    assert loss.kind is LossKind.TRUNCATED


ONE = AcceptedLoss(given_loss(LossKind.RETENTION, 10, 14), 2_000, 99, "ann", "known", 5_000, found=4_000)


@pytest.mark.parametrize("again", [{"who": "bob", "reason": "other", "at": 6_000}, {"after": 120}])
def test_the_same_loss_accepted_again_has_the_same_row(again):
    assert replace(ONE, **again).row == ONE.row


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(ONE, t=None), id="never bound"),
        pytest.param(replace(ONE, found=4_001), id="found again later"),
        pytest.param(replace(ONE, loss=replace(ONE.loss, topic="refunds")), id="another topic"),
        pytest.param(replace(ONE, loss=replace(ONE.loss, partition=1)), id="another partition"),
        pytest.param(replace(ONE, loss=replace(ONE.loss, lower=11)), id="other offsets"),
    ],
)
def test_another_loss_has_another_row(other):
    assert other.row != ONE.row
