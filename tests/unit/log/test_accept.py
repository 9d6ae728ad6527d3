"""accept: every kind of loss closes the gate, and once a person has accepted it the log goes on behind it."""

from dataclasses import dataclass, field

import pytest
from tests.support.log_samples import given_kafka, mark_published

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.memory import MemoryConsensus
from tidemark.log.accept import NothingToAccept, accept, require_closed_gate
from tidemark.log.bind import OffsetsLost, bind, close_for_losses
from tidemark.log.bindings.door import Bindings
from tidemark.log.model.binding import Available, Offsets, Slice
from tidemark.log.model.gate import LogGateCause
from tidemark.log.model.loss import AcceptedLoss, Loss, LossKind, find_losses_of, readable_slices
from tidemark.log.state.control import LogControl

pytestmark = pytest.mark.unit

LIMIT = 100
BOUND = {("orders", 0): Offsets(0, 5), ("orders", 1): Offsets(0, 5)}
ANN = AuditEntry("accept", "ann", "the broker's disk is gone", 7_000)


@dataclass(frozen=True)
class Case:
    """What Kafka holds when the loss is found, what it holds later, and what the log makes of it."""

    found: dict[tuple[str, int], Offsets]
    losses: tuple[Loss, ...]
    later: dict[tuple[str, int], Offsets]
    bound: tuple[Slice, ...]
    """The slices of the next binding."""
    readable: tuple[Slice, ...] = ()
    """What the capture of a binding reads that had bound what is lost."""
    ids: tuple[int, int] | None = None
    made_again: dict[str, str] = field(default_factory=dict)


AGAIN = {"orders": "second orders"}


@pytest.fixture
def control() -> LogControl:
    return LogControl(MemoryConsensus(), "shop")


def given_bound(control: LogControl, *, published: bool) -> None:
    """Five offsets each of two partitions, ids 0 to 9."""
    binding = bind(control, given_kafka(BOUND), LIMIT, 1_000, "run-1")
    if published:
        mark_published(control, binding)


def lose(control: LogControl, kafka: Available) -> None:
    """What a run does when it finds that Kafka no longer has what comes next."""
    with pytest.raises(OffsetsLost):
        bind(control, kafka, LIMIT, 5_000, "run-2")


def lose_of_binding(control: LogControl, t: int, kafka: Available) -> tuple[Loss, ...]:
    """What a capture does when it finds that Kafka no longer has all that is bound."""
    binding = Bindings(control).at(t)
    losses = list(find_losses_of(binding.slices, binding.topic_ids, kafka))
    close_for_losses(control, OffsetsLost("shop", tuple(losses), t), 5_000)
    return tuple(losses)


# Offsets that were never bound

UNBOUND = [
    pytest.param(
        Case(
            found=BOUND | {("orders", 0): Offsets(8, 9)},
            losses=(Loss(LossKind.RETENTION, "orders", 0, 5, 8),),
            later=BOUND | {("orders", 0): Offsets(8, 12)},
            bound=(Slice("orders", 0, 8, 12),),
        ),
        id="retention",
    ),
    pytest.param(
        Case(
            found=BOUND | {("orders", 1): Offsets(0, 3)},
            losses=(Loss(LossKind.TRUNCATED, "orders", 1, 3, 5),),
            later=BOUND | {("orders", 1): Offsets(0, 7)},
            bound=(Slice("orders", 1, 3, 7),),
        ),
        id="truncated",
    ),
    pytest.param(
        Case(
            found={("orders", 0): Offsets(0, 0), ("orders", 1): Offsets(0, 2)},
            losses=(
                Loss(LossKind.RECREATED, "orders", 0, 5, 5, "second orders"),
                Loss(LossKind.RECREATED, "orders", 1, 5, 5, "second orders"),
            ),
            later={("orders", 0): Offsets(0, 1), ("orders", 1): Offsets(0, 2)},
            bound=(Slice("orders", 0, 0, 1), Slice("orders", 1, 0, 2)),
            made_again=AGAIN,
        ),
        id="recreated",
    ),
    pytest.param(
        Case(
            found={("orders", 0): Offsets(8, 9), ("orders", 1): Offsets(0, 3)},
            losses=(
                Loss(LossKind.RETENTION, "orders", 0, 5, 8),
                Loss(LossKind.TRUNCATED, "orders", 1, 3, 5),
            ),
            later={("orders", 0): Offsets(8, 9), ("orders", 1): Offsets(0, 4)},
            bound=(Slice("orders", 0, 8, 9), Slice("orders", 1, 3, 4)),
        ),
        id="several at once",
    ),
]


@pytest.mark.parametrize("case", UNBOUND)
def test_lost_offsets_close_the_gate(control, case):
    given_bound(control, published=True)
    lose(control, given_kafka(case.found, **case.made_again))
    gate = control.log_gate()
    assert (gate.cause, gate.t, gate.ids, gate.losses, gate.at) == (
        LogGateCause.LOST,
        None,
        None,
        case.losses,
        5_000,
    )


@pytest.mark.parametrize("case", UNBOUND)
def test_behind_accepted_offsets_the_next_binding_goes_on(control, case):
    given_bound(control, published=True)
    lose(control, given_kafka(case.found, **case.made_again))
    accept(control, require_closed_gate(control), ANN)
    binding = bind(control, given_kafka(case.later, **case.made_again), LIMIT, 8_000, "run-3")
    assert (control.log_gate(), binding.base, binding.slices) == (None, 10, case.bound)


@pytest.mark.parametrize("case", UNBOUND)
def test_accepted_offsets_are_on_record_after_the_last_id_that_was_bound(control, case):
    given_bound(control, published=True)
    lose(control, given_kafka(case.found, **case.made_again))
    accept(control, require_closed_gate(control), ANN)
    assert control.accepted_losses() == [
        AcceptedLoss(loss, None, 9, "ann", "the broker's disk is gone", 7_000, found=5_000, is_planned=True)
        for loss in case.losses
    ]


def test_a_topic_made_again_is_known_by_its_new_id_once_it_is_bound(control):
    given_bound(control, published=True)
    lose(control, given_kafka(BOUND, **AGAIN))
    accept(control, require_closed_gate(control), ANN)
    bind(control, given_kafka(BOUND, **AGAIN), LIMIT, 8_000, "run-3")
    assert control.bindings_head().topic_ids == AGAIN


# Offsets that were bound and not captured

UNCAPTURED = [
    pytest.param(
        Case(
            found=BOUND | {("orders", 1): Offsets(2, 9)},
            losses=(Loss(LossKind.RETENTION, "orders", 1, 0, 2),),
            ids=(5, 6),
            readable=(Slice("orders", 0, 0, 5), Slice("orders", 1, 2, 5)),
            later=BOUND | {("orders", 1): Offsets(2, 9)},
            bound=(Slice("orders", 1, 5, 9),),
        ),
        id="retention",
    ),
    pytest.param(
        Case(
            found=BOUND | {("orders", 1): Offsets(0, 3)},
            losses=(Loss(LossKind.TRUNCATED, "orders", 1, 3, 5),),
            ids=(8, 9),
            readable=(Slice("orders", 0, 0, 5), Slice("orders", 1, 0, 3)),
            later=BOUND | {("orders", 1): Offsets(0, 7)},
            bound=(Slice("orders", 1, 3, 7),),
        ),
        id="truncated",
    ),
    pytest.param(
        Case(
            found={("orders", 0): Offsets(0, 1), ("orders", 1): Offsets(0, 9)},
            losses=(
                Loss(LossKind.RECREATED, "orders", 0, 0, 5, "second orders"),
                Loss(LossKind.RECREATED, "orders", 1, 0, 5, "second orders"),
            ),
            ids=(0, 9),
            readable=(),
            later={("orders", 0): Offsets(0, 1), ("orders", 1): Offsets(0, 9)},
            bound=(Slice("orders", 0, 0, 1), Slice("orders", 1, 0, 9)),
            made_again=AGAIN,
        ),
        id="recreated",
    ),
    pytest.param(
        Case(
            found={},
            losses=(Loss(LossKind.DELETED, "orders", 0, 0, 5), Loss(LossKind.DELETED, "orders", 1, 0, 5)),
            ids=(0, 9),
            readable=(),
            later={("orders", 0): Offsets(0, 2)},
            bound=(Slice("orders", 0, 0, 2),),
            made_again=AGAIN,
        ),
        id="deleted",
    ),
    pytest.param(
        Case(
            found={("orders", 0): Offsets(1, 4), ("orders", 1): Offsets(2, 9)},
            losses=(
                Loss(LossKind.RETENTION, "orders", 0, 0, 1),
                Loss(LossKind.TRUNCATED, "orders", 0, 4, 5),
                Loss(LossKind.RETENTION, "orders", 1, 0, 2),
            ),
            ids=(0, 6),
            readable=(Slice("orders", 0, 1, 4), Slice("orders", 1, 2, 5)),
            later={("orders", 0): Offsets(1, 6), ("orders", 1): Offsets(2, 9)},
            bound=(Slice("orders", 0, 4, 6), Slice("orders", 1, 5, 9)),
        ),
        id="several at once",
    ),
]


@pytest.mark.parametrize("case", UNCAPTURED)
def test_lost_offsets_of_a_binding_close_the_gate_and_name_its_ids(control, case):
    given_bound(control, published=False)
    losses = lose_of_binding(control, 1_000, given_kafka(case.found, **case.made_again))
    gate = control.log_gate()
    assert (losses, gate.losses) == (case.losses, case.losses)
    assert (gate.cause, gate.t, gate.ids, gate.at) == (LogGateCause.LOST, 1_000, case.ids, 5_000)


@pytest.mark.parametrize("case", UNCAPTURED)
def test_of_an_accepted_binding_what_is_left_is_captured(control, case):
    given_bound(control, published=False)
    lose_of_binding(control, 1_000, given_kafka(case.found, **case.made_again))
    accept(control, require_closed_gate(control), ANN)
    assert control.log_gate() is None
    assert readable_slices(Bindings(control).at(1_000), control.accepted_losses()) == case.readable


@pytest.mark.parametrize("case", UNCAPTURED)
def test_behind_an_accepted_binding_the_next_one_goes_on(control, case):
    given_bound(control, published=False)
    lose_of_binding(control, 1_000, given_kafka(case.found, **case.made_again))
    accept(control, require_closed_gate(control), ANN)
    mark_published(control, Bindings(control).at(1_000))
    binding = bind(control, given_kafka(case.later, **case.made_again), LIMIT, 8_000, "run-3")
    assert (binding.base, binding.slices) == (10, case.bound)


def test_lost_offsets_of_a_binding_are_on_record_after_the_id_before_them(control):
    given_bound(control, published=False)
    lose_of_binding(control, 1_000, given_kafka({("orders", 0): Offsets(0, 3), ("orders", 1): Offsets(2, 5)}))
    accept(control, require_closed_gate(control), ANN)
    assert [(one.loss.place, one.t, one.after) for one in control.accepted_losses()] == [
        (("orders", 0), 1_000, 2),
        (("orders", 1), 1_000, 4),
    ]


def test_of_a_partition_truncated_before_its_slice_nothing_new_is_passed_by(control):
    """Bound up to 5 and published, then up to 9; it ends at 2 now, and goes on there."""
    given_bound(control, published=True)
    kafka = given_kafka(BOUND | {("orders", 0): Offsets(0, 9)})
    second = bind(control, kafka, LIMIT, 2_000, "run-2")
    lose_of_binding(control, second.t, given_kafka(BOUND | {("orders", 0): Offsets(0, 2)}))
    assert control.log_gate().ids == (10, 13)
    accept(control, require_closed_gate(control), ANN)
    mark_published(control, second)
    refilled = given_kafka(BOUND | {("orders", 0): Offsets(0, 5)})
    assert bind(control, refilled, LIMIT, 8_000, "run-3").slices == (Slice("orders", 0, 2, 5),)


# The person


def test_what_the_person_said_is_kept_with_what_the_gate_said(control):
    given_bound(control, published=True)
    lose(control, given_kafka(BOUND | {("orders", 0): Offsets(8, 9)}))
    accept(control, require_closed_gate(control), ANN)
    said = "records are lost: orders/0: offsets 5 to 7 were removed before their capture"
    assert control.decisions() == [AuditEntry("accept", "ann", "the broker's disk is gone", 7_000, said)]


def test_an_open_gate_has_nothing_to_accept(control):
    with pytest.raises(NothingToAccept, match=r"^shop: the log's gate is open, so .* Nothing was changed\."):
        require_closed_gate(control)
