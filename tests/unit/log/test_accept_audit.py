"""A capture that failed its audit: it closes the gate, and is published once it is good or accepted."""

import pytest
from tests.support.log_samples import (
    FIRST,
    FIRST_VALUES,
    PUBLISHED_AT,
    SECOND,
    SECOND_VALUES,
    SEGMENT_BYTES,
    add_binding,
    capture,
    given_finding,
    publish_all,
)

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.log.accept import GateChanged, accept, require_closed_gate
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.gate import LogGate, LogGateCause, LogStopped
from tidemark.log.publish import OutOfTurn, publish, read_log, require_audit
from tidemark.log.state.control import LogControl, LogHead

pytestmark = pytest.mark.unit

BAD = given_finding("offsets grow", "1 does not", (3, 4))
ANN = AuditEntry("accept", "ann", "known", 10_000)


def stopped(control: LogControl, folder: LogFolder, now: int = PUBLISHED_AT) -> LogStopped:
    with pytest.raises(LogStopped) as refusal:
        publish(control, folder, FIRST, SEGMENT_BYTES, now)
    return refusal.value


# The way in


def test_a_failed_audit_stops_the_log_and_says_which_ids(control, folder):
    capture(folder, FIRST, FIRST_VALUES, bad=BAD)
    assert str(stopped(control, folder)) == (
        "orders: the log's gate is closed: the capture of the binding at 1000 failed its audit (offsets "
        "grow: 1 does not) (ids 3 to 4). Nothing was published. Put the cause right and clear the failed "
        'task, or accept it: tidemark log accept orders --reason "…"'
    )


def test_a_failed_audit_closes_the_gate_over_exactly_this_capture(control, folder):
    captured = capture(folder, FIRST, FIRST_VALUES, bad=BAD)
    error = stopped(control, folder)
    assert control.log_gate() == error.gate
    assert error.gate == LogGate(
        cause=LogGateCause.AUDIT,
        reason="the capture of the binding at 1000 failed its audit (offsets grow: 1 does not)",
        t=1_000,
        ids=(3, 4),
        losses=(),
        captured=captured.digest,
        at=PUBLISHED_AT,
    )


def test_a_failed_audit_publishes_nothing(control, folder, tmp_path):
    capture(folder, FIRST, FIRST_VALUES, bad=BAD)
    stopped(control, folder)
    assert control.log_head() == LogHead(version=1)
    assert not (tmp_path / "manifests").exists()


def test_a_finding_without_ids_is_about_the_whole_binding(control, folder):
    capture(folder, FIRST, FIRST_VALUES, bad=given_finding("enough rows", "found 0", None))
    assert stopped(control, folder).gate.ids == (0, 4)


def test_several_findings_are_said_together(control, folder):
    captured = capture(folder, FIRST, FIRST_VALUES, audited=False)
    findings = (given_finding("a", "x", (3, 4)), given_finding("b", "y", (0, 2)))
    folder.write_audit(AuditRecord(1_000, captured.digest, findings))
    gate = stopped(control, folder).gate
    assert gate.reason.endswith("failed its audit (a: x; b: y)")
    assert gate.ids == (0, 4)


@pytest.mark.parametrize("severity", ["warning", "info"])
def test_a_warning_stops_nothing(control, folder, severity):
    capture(folder, FIRST, FIRST_VALUES, bad=given_finding("no holes", "1 hole", (0, 4), severity))
    assert publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT).end == 4


def test_trying_again_stops_again_and_keeps_the_first_time(control, folder):
    capture(folder, FIRST, FIRST_VALUES, bad=BAD)
    stopped(control, folder, now=9_000)
    assert stopped(control, folder, now=9_500).gate.at == 9_000


def test_an_audit_that_is_only_looked_at_closes_the_gate_too(control, folder):
    capture(folder, FIRST, FIRST_VALUES, bad=BAD)
    with pytest.raises(LogStopped):
        require_audit(control, folder, FIRST, PUBLISHED_AT)
    assert control.log_gate().ids == (3, 4)


# The ways out


def test_an_accepted_capture_is_published_as_it_is(control, folder):
    captured = capture(folder, FIRST, FIRST_VALUES, bad=BAD)
    stopped(control, folder)
    accept(control, require_closed_gate(control), ANN)
    publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    assert tuple(read_log(control, folder).files) == captured.files
    assert control.log_gate() is None


def test_an_acceptance_is_kept_with_what_the_gate_said(control, folder):
    capture(folder, FIRST, FIRST_VALUES, bad=BAD)
    stopped(control, folder)
    accept(control, require_closed_gate(control), ANN)
    said = "the capture of the binding at 1000 failed its audit (offsets grow: 1 does not)"
    assert control.decisions() == [AuditEntry("accept", "ann", "known", 10_000, said)]


def test_an_acceptance_records_no_loss(control, folder):
    capture(folder, FIRST, FIRST_VALUES, bad=BAD)
    stopped(control, folder)
    accept(control, require_closed_gate(control), ANN)
    assert control.accepted_losses() == []
    assert control.bindings_head().version == 0


def test_accepting_again_changes_nothing(control, folder):
    capture(folder, FIRST, FIRST_VALUES, bad=BAD)
    gate = stopped(control, folder).gate
    accept(control, gate, ANN)
    before = control.log_head(), control.decisions()
    with pytest.raises(GateChanged):
        accept(control, gate, AuditEntry("accept", "bob", "also", 10_001))
    assert (control.log_head(), control.decisions()) == before


def test_a_retry_with_a_good_audit_is_published_and_opens_the_gate(control, folder):
    captured = capture(folder, FIRST, FIRST_VALUES, bad=BAD)
    stopped(control, folder)
    folder.write_audit(AuditRecord(1_000, captured.digest, ()))
    publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    assert (control.log_head().end, control.log_gate(), control.decisions()) == (4, None, [])


# Not more than what was meant


def test_the_same_finding_in_another_capture_closes_the_gate_over_that_one(control, folder, tmp_path):
    capture(folder, FIRST, FIRST_VALUES, bad=BAD)
    stopped(control, folder)
    (tmp_path / "captured" / f"{1_000:020d}.json").unlink()
    other = capture(folder, FIRST, {("orders", 1): FIRST_VALUES["orders", 1]}, bad=BAD)
    assert stopped(control, folder).gate.captured == other.digest


def test_an_acceptance_holds_for_no_other_capture(control, folder, tmp_path):
    capture(folder, FIRST, FIRST_VALUES, bad=BAD)
    stopped(control, folder)
    accept(control, require_closed_gate(control), ANN)
    (tmp_path / "captured" / f"{1_000:020d}.json").unlink()
    capture(folder, FIRST, {("orders", 1): FIRST_VALUES["orders", 1]}, bad=BAD)
    stopped(control, folder)
    assert control.log_head().end == -1


def test_an_acceptance_holds_for_no_later_binding(control, folder):
    capture(folder, FIRST, FIRST_VALUES, bad=BAD)
    stopped(control, folder)
    accept(control, require_closed_gate(control), ANN)
    publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    capture(folder, SECOND, SECOND_VALUES, bad=BAD)
    with pytest.raises(LogStopped):
        publish(control, folder, SECOND, SEGMENT_BYTES, PUBLISHED_AT)
    assert control.log_gate().t == 2_000


def test_what_is_published_already_is_not_judged_again(control, folder):
    publish_all(control, folder, {FIRST: FIRST_VALUES})
    folder.write_audit(AuditRecord(1_000, folder.read_captured(1_000).digest, (BAD,)))
    assert publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT) == control.log_head()
    assert control.log_gate() is None


# Races


def test_two_that_publish_a_bad_capture_close_one_gate(control, folder, consensus):
    capture(folder, FIRST, FIRST_VALUES, bad=BAD)
    consensus.before_next_commit = lambda: stopped(control, folder, now=9_000)
    assert stopped(control, folder, now=9_500).gate.at == 9_000


def test_a_capture_accepted_while_the_gate_is_closed_over_it_is_published_at_once(control, folder, consensus):
    capture(folder, FIRST, FIRST_VALUES, bad=BAD)

    def close_and_accept() -> None:
        accept(control, stopped(control, folder).gate, ANN)

    consensus.before_next_commit = close_and_accept
    assert publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT).end == 4
    assert control.log_gate() is None


def test_a_bad_capture_keeps_the_next_binding_waiting(control, folder):
    for binding, values, bad in ((FIRST, FIRST_VALUES, BAD), (SECOND, SECOND_VALUES, None)):
        add_binding(control, binding)
        capture(folder, binding, values, bad=bad)
    stopped(control, folder)
    with pytest.raises(OutOfTurn):
        publish(control, folder, SECOND, SEGMENT_BYTES, PUBLISHED_AT)
