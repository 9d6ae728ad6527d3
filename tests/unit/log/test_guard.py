"""bind behind the log's gate: it closes over a loss, and opens by itself once nothing is lost any more."""

from dataclasses import replace

import pytest
from tests.support.log_samples import given_kafka, mark_published

from tidemark.consensus.memory import MemoryConsensus
from tidemark.log.bind import OffsetsLost, bind
from tidemark.log.model.binding import Binding, Offsets
from tidemark.log.model.gate import LogGate, LogGateCause
from tidemark.log.model.loss import Loss, LossKind
from tidemark.log.state.control import LogControl

pytestmark = pytest.mark.unit

BAD = LogGate(LogGateCause.AUDIT, "the audit failed", 1_000, (0, 4), (), "d" * 64, 6_000)
LOST_OF_BINDING = replace(BAD, cause=LogGateCause.LOST, captured=None)


@pytest.fixture
def control() -> LogControl:
    return LogControl(MemoryConsensus(), "shop")


def bind_at(control: LogControl, now: int, offsets: Offsets) -> Binding | None:
    return bind(control, given_kafka({("orders", 0): offsets}), 100, now, f"run at {now}")


def lose(control: LogControl, now: int, offsets: Offsets) -> None:
    with pytest.raises(OffsetsLost):
        bind_at(control, now, offsets)


def test_without_a_loss_the_gate_stays_open(control):
    assert bind_at(control, 1_000, Offsets(0, 5)).width == 5
    assert control.log_gate() is None


def test_a_loss_is_durable_before_it_is_raised(control):
    mark_published(control, bind_at(control, 1_000, Offsets(0, 5)))
    lose(control, 2_000, Offsets(7, 9))
    reason = "records are lost: orders/0: offsets 5 to 6 were removed before their capture"
    losses = (Loss(LossKind.RETENTION, "orders", 0, 5, 7),)
    assert control.log_gate() == LogGate(LogGateCause.LOST, reason, None, None, losses, None, 2_000)


def test_a_loss_that_is_found_again_keeps_its_first_time(control):
    mark_published(control, bind_at(control, 1_000, Offsets(0, 5)))
    lose(control, 2_000, Offsets(7, 9))
    lose(control, 3_000, Offsets(7, 9))
    assert control.log_gate().at == 2_000


def test_more_that_is_lost_is_what_the_gate_says_then(control):
    mark_published(control, bind_at(control, 1_000, Offsets(0, 5)))
    lose(control, 2_000, Offsets(7, 9))
    lose(control, 3_000, Offsets(8, 9))
    assert control.log_gate().losses == (Loss(LossKind.RETENTION, "orders", 0, 5, 8),)


@pytest.mark.parametrize("offsets", [Offsets(0, 9), Offsets(0, 5)], ids=["with more to bind", "with nothing"])
def test_the_gate_opens_by_itself_once_kafka_is_restored(control, offsets):
    mark_published(control, bind_at(control, 1_000, Offsets(0, 5)))
    lose(control, 2_000, Offsets(0, 3))
    bind_at(control, 3_000, offsets)
    assert (control.log_gate(), control.accepted_losses(), control.decisions()) == (None, [], [])


@pytest.mark.parametrize("gate", [BAD, LOST_OF_BINDING], ids=["a bad audit", "lost offsets of it"])
def test_a_gate_over_a_binding_is_not_opened_by_finding_that_binding_again(control, gate):
    unpublished = bind_at(control, 1_000, Offsets(0, 5))
    control.close_gate(gate)
    assert bind_at(control, 2_000, Offsets(0, 9)) == unpublished
    assert control.log_gate() == gate


def test_an_audit_s_gate_is_not_opened_for_want_of_a_loss(control):
    control.close_gate(replace(BAD, t=None))
    bind_at(control, 1_000, Offsets(0, 5))
    assert control.log_gate().cause is LogGateCause.AUDIT
