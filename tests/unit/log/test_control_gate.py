"""The log's gate in the control plane: closed once, opened for its own cause, and every decision kept."""

from dataclasses import replace

import pytest
from tests.support.consensus import RacingConsensus

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.objects import ObjectKey, ObjectKind, Outpaced
from tidemark.log.model.gate import LogGate, LogGateCause
from tidemark.log.model.loss import Loss, LossKind
from tidemark.log.state.control import LogControl, LogHead

pytestmark = pytest.mark.unit

LOG = ObjectKey(ObjectKind.LOG, "orders")
LOSS = Loss(LossKind.RETENTION, "orders", 0, 5, 8)
LOST = LogGate(LogGateCause.LOST, "records are lost", None, None, (LOSS,), None, 5_000)
LOST_OF_BINDING = replace(LOST, t=2_000, ids=(5, 7))
BAD = LogGate(LogGateCause.AUDIT, "the audit failed", 2_000, (5, 7), (), "d" * 64, 6_000)
ANN = AuditEntry("accept", "ann", "known", 7_000, "records are lost")
BOB = AuditEntry("accept", "bob", "also known", 8_000, "the audit failed")
PUBLISHED = LogHead(manifest="manifests/a.json", digest="d" * 64, t=2_000, end=7)


def rows_of(consensus: RacingConsensus) -> list[str]:
    return list(consensus.scan(LOG, "").rows)


# Closing


def test_a_gate_is_open_until_it_is_closed(control):
    assert control.log_gate() is None


def test_a_closed_gate_says_why(control):
    control.close_gate(LOST_OF_BINDING)
    assert control.log_gate() == LOST_OF_BINDING


def test_closing_answers_with_the_gate_that_is_closed(control):
    assert control.close_gate(LOST) == LOST


def test_a_gate_closed_again_for_the_same_reason_keeps_its_time(control):
    control.close_gate(LOST)
    assert control.close_gate(replace(LOST, at=9_000)) == LOST
    assert control.log_gate() == LOST


def test_a_gate_closed_again_for_the_same_reason_changes_nothing(control):
    control.close_gate(LOST)
    version = control.log_head().version
    control.close_gate(replace(LOST, at=9_000))
    assert control.log_head().version == version


def test_a_gate_closed_for_another_reason_says_that_one(control):
    control.close_gate(LOST)
    assert control.close_gate(BAD) == BAD
    assert control.log_gate() == BAD


def test_closing_keeps_the_log_as_it_is(control):
    control.replace_log(0, PUBLISHED)
    control.close_gate(LOST)
    assert control.log_head() == replace(PUBLISHED, version=2)


def test_gates_of_different_pipelines_do_not_touch(control, consensus):
    control.close_gate(LOST)
    assert LogControl(consensus, "invoices").log_gate() is None


# Opening


def test_an_opened_gate_is_no_row_at_all(control, consensus):
    control.close_gate(LOST)
    control.open_gate(LOST)
    assert control.log_gate() is None
    assert rows_of(consensus) == []


def test_a_gate_is_opened_whenever_it_was_closed(control):
    control.close_gate(LOST)
    control.open_gate(replace(LOST, at=1))
    assert control.log_gate() is None


def test_a_gate_that_closed_for_another_reason_stays_closed(control, consensus):
    control.close_gate(BAD)
    control.open_gate(LOST, ANN)
    assert control.log_gate() == BAD
    assert rows_of(consensus) == ["gate"]


def test_opening_an_open_gate_changes_nothing(control):
    control.open_gate(LOST, ANN)
    assert (control.log_head().version, control.decisions()) == (0, [])


# Decisions


def test_a_decision_is_kept(control):
    control.close_gate(LOST)
    control.open_gate(LOST, ANN)
    assert control.decisions() == [ANN]


def test_a_gate_that_opened_by_itself_leaves_no_decision(control):
    control.close_gate(LOST)
    control.open_gate(LOST)
    assert control.decisions() == []


def test_decisions_stay_oldest_first(control):
    for gate, decision in ((BAD, BOB), (LOST, ANN)):
        control.close_gate(gate)
        control.open_gate(gate, decision)
    assert control.decisions() == [ANN, BOB]


def test_what_was_decided_about_a_capture_is_kept_for_this_very_capture(control):
    control.close_gate(BAD)
    control.open_gate(BAD, BOB)
    assert control.is_accepted(2_000, "d" * 64)


@pytest.mark.parametrize(("t", "captured"), [(2_000, "e" * 64), (3_000, "d" * 64)])
def test_what_was_decided_about_one_capture_holds_for_no_other(control, t, captured):
    control.close_gate(BAD)
    control.open_gate(BAD, BOB)
    assert not control.is_accepted(t, captured)


def test_a_gate_that_opened_by_itself_accepts_no_capture(control):
    control.close_gate(BAD)
    control.open_gate(BAD)
    assert not control.is_accepted(2_000, "d" * 64)


@pytest.mark.parametrize("gate", [LOST, LOST_OF_BINDING])
def test_accepting_a_loss_accepts_no_capture(control, consensus, gate):
    control.close_gate(gate)
    control.open_gate(gate, ANN)
    assert rows_of(consensus) == ["decision/00000000000000007000"]


def test_what_was_decided_outlives_the_publication(control):
    control.close_gate(BAD)
    control.open_gate(BAD, BOB)
    control.replace_log(control.log_head().version, PUBLISHED)
    assert control.decisions() == [BOB]
    assert control.is_accepted(2_000, "d" * 64)


# Publishing


@pytest.mark.parametrize("gate", [BAD, LOST_OF_BINDING, replace(BAD, t=1_000)])
def test_publishing_a_binding_opens_the_gate_over_it(control, gate):
    control.close_gate(gate)
    control.replace_log(control.log_head().version, PUBLISHED)
    assert control.log_gate() is None
    assert control.log_head().t == 2_000


@pytest.mark.parametrize("gate", [LOST, replace(BAD, t=2_001)])
def test_publishing_a_binding_opens_no_other_gate(control, gate):
    control.close_gate(gate)
    control.replace_log(control.log_head().version, PUBLISHED)
    assert control.log_gate() == gate
    assert control.log_head().t == 2_000


def test_a_publication_over_a_stale_log_opens_no_gate(control):
    stale = control.log_head().version
    control.close_gate(BAD)
    with pytest.raises(Outpaced):
        control.replace_log(stale, PUBLISHED)
    assert control.log_gate() == BAD


# Races


def test_two_that_close_for_the_same_reason_agree_on_the_first(control, consensus):
    consensus.before_next_commit = lambda: control.close_gate(LOST)
    assert control.close_gate(replace(LOST, at=5_001)) == LOST
    assert control.log_gate() == LOST


def test_of_two_that_close_for_different_reasons_the_later_stays(control, consensus):
    consensus.before_next_commit = lambda: control.close_gate(LOST)
    assert control.close_gate(BAD) == BAD
    assert control.log_gate() == BAD


def test_a_gate_closed_during_a_publication_is_closed_after_it(control, consensus):
    consensus.before_next_commit = lambda: control.replace_log(0, PUBLISHED)
    control.close_gate(LOST)
    assert (control.log_gate(), control.log_head().t) == (LOST, 2_000)


def test_a_publication_that_meets_a_gate_being_closed_is_outpaced(control, consensus):
    consensus.before_next_commit = lambda: control.close_gate(BAD)
    with pytest.raises(Outpaced):
        control.replace_log(0, PUBLISHED)
    assert (control.log_gate(), control.log_head().t) == (BAD, 0)


def test_a_gate_that_closes_for_another_reason_while_it_is_opened_stays_closed(control, consensus):
    control.close_gate(LOST)
    consensus.before_next_commit = lambda: control.close_gate(BAD)
    control.open_gate(LOST, ANN)
    assert (control.log_gate(), control.decisions()) == (BAD, [])


def test_of_two_people_who_open_the_same_gate_the_first_is_kept(control, consensus):
    control.close_gate(LOST)
    consensus.before_next_commit = lambda: control.open_gate(LOST, ANN)
    control.open_gate(LOST, replace(BOB, about="records are lost"))
    assert (control.log_gate(), control.decisions()) == (None, [ANN])


def test_a_gate_is_opened_through_a_publication_of_something_else(control, consensus):
    control.close_gate(LOST)
    consensus.before_next_commit = lambda: control.replace_log(1, PUBLISHED)
    control.open_gate(LOST, ANN)
    assert (control.log_gate(), control.log_head().t, control.decisions()) == (None, 2_000, [ANN])
