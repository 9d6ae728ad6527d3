"""bind: what it refuses to bind, and changes nothing then."""

import pytest
from tests.support.log_samples import given_available, given_kafka, mark_published

from tidemark.consensus.memory import MemoryConsensus
from tidemark.errors import TidemarkError
from tidemark.log.bind import ClockOff, OffsetsLost, bind, refuse_clock
from tidemark.log.model.binding import Offsets
from tidemark.log.model.loss import Loss, LossKind
from tidemark.log.state.control import LogControl

pytestmark = pytest.mark.unit

NOW = 1_000_000
LIMIT = 100
TWO_PARTITIONS = {("orders", 0): Offsets(0, 5), ("orders", 1): Offsets(0, 5)}


@pytest.fixture
def control() -> LogControl:
    """Five offsets each of two partitions are bound and published."""
    control = LogControl(MemoryConsensus(), "shop")
    mark_published(control, bind(control, given_kafka(TWO_PARTITIONS), LIMIT, NOW, "run-1"))
    return control


def refused(control: LogControl, offsets: dict[tuple[str, int], Offsets], **made_again: str) -> OffsetsLost:
    with pytest.raises(OffsetsLost) as refusal:
        bind(control, given_kafka(TWO_PARTITIONS | offsets, **made_again), LIMIT, NOW + 100, "run-2")
    return refusal.value


# Losses


def test_offsets_removed_before_their_capture_are_refused(control):
    error = refused(control, {("orders", 1): Offsets(10, 20)})
    assert (error.pipeline, error.losses, error.t) == (
        "shop",
        (Loss(LossKind.RETENTION, "orders", 1, 5, 10),),
        None,
    )
    assert str(error) == (
        "shop: records are lost: orders/1: offsets 5 to 9 were removed before their capture. Nothing was "
        "bound or published. Restore the topic and clear the failed task, or accept the loss: "
        'tidemark log accept shop --reason "…"'
    )


def test_a_partition_that_became_shorter_is_refused(control):
    error = refused(control, {("orders", 1): Offsets(0, 4)})
    assert (error.pipeline, error.losses, error.t) == (
        "shop",
        (Loss(LossKind.TRUNCATED, "orders", 1, 4, 5),),
        None,
    )
    assert str(error) == (
        "shop: records are lost: orders/1: it ends at 4, but offsets below 5 are bound already. Nothing was "
        "bound or published. Restore the topic and clear the failed task, or accept the loss: "
        'tidemark log accept shop --reason "…"'
    )


def test_a_topic_made_again_is_refused(control):
    error = refused(control, {}, orders="second orders")
    assert error.losses == (
        Loss(LossKind.RECREATED, "orders", 0, 5, 5, "second orders"),
        Loss(LossKind.RECREATED, "orders", 1, 5, 5, "second orders"),
    )


def test_every_loss_is_refused_at_once(control):
    error = refused(control, {("orders", 0): Offsets(6, 9), ("orders", 1): Offsets(0, 4)})
    assert error.losses == (
        Loss(LossKind.RETENTION, "orders", 0, 5, 6),
        Loss(LossKind.TRUNCATED, "orders", 1, 4, 5),
    )


@pytest.mark.parametrize(
    "offsets",
    [
        pytest.param(Offsets(0, 5), id="nothing new"),
        pytest.param(Offsets(5, 5), id="everything captured has been removed"),
        pytest.param(Offsets(5, 9), id="removed up to what is bound"),
    ],
)
def test_what_is_captured_may_be_removed_from_kafka(control, offsets):
    kafka = given_kafka({("orders", 0): Offsets(0, 6), ("orders", 1): offsets})
    assert bind(control, kafka, LIMIT, NOW + 100, "run-2") is not None


def test_a_partition_never_bound_has_lost_nothing(control):
    kafka = given_kafka(TWO_PARTITIONS | {("orders", 2): Offsets(10, 20)})
    assert bind(control, kafka, LIMIT, NOW + 100, "run-2").width == 10


@pytest.mark.parametrize(
    ("offsets", "made_again"),
    [
        pytest.param(Offsets(6, 20), {}, id="removed"),
        pytest.param(Offsets(0, 4), {}, id="truncated"),
        pytest.param(Offsets(0, 9), {"orders": "second orders"}, id="made again"),
    ],
)
def test_bind_changes_nothing_over_a_loss(control, offsets, made_again):
    before = control.bindings_head()
    refused(control, {("orders", 1): offsets}, **made_again)
    assert control.bindings_head() == before


def test_a_loss_of_one_partition_keeps_the_others_from_being_bound(control):
    before = control.bindings_head()
    refused(control, {("orders", 0): Offsets(0, 90), ("orders", 1): Offsets(6, 20)})
    assert control.bindings_head() == before


@pytest.mark.parametrize("made_again", [{}, {"orders": "second orders"}])
def test_what_is_unpublished_can_be_finished_over_a_loss(made_again):
    control = LogControl(MemoryConsensus(), "shop")
    unpublished = bind(control, given_available(orders=5), LIMIT, NOW, "run-1")
    kafka = given_kafka({("orders", 0): Offsets(6, 20)}, **made_again)
    assert bind(control, kafka, LIMIT, NOW + 100, "run-2") == unpublished


# Clocks


@pytest.mark.parametrize(
    ("ours", "difference", "said"), [(21_000_000, 11_000_000, "+11.0 s"), (0, -10_000_001, "-10.0 s")]
)
def test_a_clock_that_is_off_is_refused(ours, difference, said):
    with pytest.raises(ClockOff) as refusal:
        refuse_clock("orders", ours, ours - difference)
    assert (refusal.value.pipeline, refusal.value.difference) == ("orders", difference)
    assert str(refusal.value).startswith(f"orders: this machine's clock is {said} away from Cassandra's.")


@pytest.mark.parametrize("difference", [-10_000_000, 0, 10_000_000])
def test_a_clock_within_10_seconds_is_taken(difference):
    refuse_clock("orders", 50_000_000 + difference, 50_000_000)


@pytest.mark.parametrize("error", [ClockOff, OffsetsLost])
def test_refusals_are_for_a_person(error):
    assert issubclass(error, TidemarkError)


def test_a_loss_needs_a_person_and_a_clock_does_not():
    assert (OffsetsLost.needs_person, ClockOff.needs_person) == (True, False)
