"""After a delivery: a few entities against the log, what is kept of it, and the gate that closes over it."""

from pathlib import Path

import pytest
from tests.support.faults import Killed, kill_at
from tests.support.found_in_memory import FoundInMemory, given_delivered
from tests.support.journal_damage import with_changed_row, with_pointer_too_far, without_head
from tests.support.journal_samples import JournalWorld

from tidemark.delivery.state.writer_state import Cause
from tidemark.faults import FaultPoint
from tidemark.journal_tables.reader import JournalReader
from tidemark.log.expectations import ExpectationDeclaration, Suite
from tidemark.verification.reconcile import StillDifferent, reconcile, reopen_gate
from tidemark.verification.reconciliation import Reconciliation, read
from tidemark.verification.sample import verify_sample

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:great_expectations"),  # at import
]


class Desk:
    """Where a house's journal is reconciled."""

    def __init__(self, house: JournalWorld, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.house, self.root = house, str(root)
        patch.setattr(house.actions, "root", str(root))  # where the records are kept
        patch.setattr(JournalReader, "open", lambda *_: FoundInMemory(self.house.journal))
        patch.setattr(type(house.log), "reopened", lambda log: log)

    def reconcile(self, suite: Suite = Suite(), after: int = -1) -> Reconciliation:  # noqa: B008
        house = self.house
        found, sample = verify_sample(house.process, house.log, house.positions, after, 10)
        return reconcile(house.process, house.positions, self.root, found, sample, suite, "run", house.clock)

    @property
    def gate(self):
        return self.house.gate(self.house.process)

    def reopen(self) -> list[str]:
        house, said = self.house, []
        reopen_gate(
            house.process, self.gate, house.log, house.positions, "ann", said.append, clock=house.clock
        )
        return said


@pytest.fixture
def desk(tmp_path, monkeypatch) -> Desk:
    return Desk(given_delivered("A1,2", "A3"), tmp_path, monkeypatch)


# Judging, and the gate


def test_tables_that_hold_what_the_log_says_pass_and_that_is_kept(desk):
    record = desk.reconcile()
    assert (record.passed, desk.gate) == (True, None)
    assert read("orders", desk.root, "journal", 1) == record
    assert record.summary == "1 entity: 1 as the log says; 1 pointer; up to id 1"


def test_a_difference_closes_the_gate_and_the_reason_names_the_entity(desk):
    with_changed_row(desk.house)
    record = desk.reconcile()
    assert not record.passed
    assert (desk.gate.cause, desk.gate.last_id, desk.gate.through) == (Cause.VERIFICATION, 1, 1)
    assert "orders: k: event 2 was changed: payload_txt" in desk.gate.reason
    assert any("critical the tables hold what the log says" in line for line in record.to_lines())


def test_a_gate_that_is_closed_already_keeps_its_reason(desk):
    desk.house.operator.stop("journal").execute(desk.house.deed("stop"))
    without_head(desk.house)
    desk.reconcile()
    assert desk.gate.cause is Cause.HAND


def test_a_pipeline_s_own_expectation_closes_the_gate_too(desk):
    own = ExpectationDeclaration(
        type="expect_column_values_to_be_between",
        kwargs={"column": "seq_nr", "max_value": 2},
        notes="entities are short",
    )
    record = desk.reconcile(Suite(delivered=(own,)))
    assert not record.passed
    assert "entities are short" in desk.gate.reason
    with pytest.raises(StillDifferent, match="own expectations were not met"):
        desk.reopen()


def test_who_dies_before_the_record_is_kept_leaves_the_gate_closed(desk, monkeypatch):
    with_changed_row(desk.house)
    kill_at(monkeypatch, FaultPoint.RECONCILED)
    with pytest.raises(Killed):
        desk.reconcile()
    assert desk.gate.cause is Cause.VERIFICATION
    with pytest.raises(StillDifferent, match="there is no record"):
        desk.reopen()


# Opening it again


def test_the_gate_opens_after_a_clean_verification_of_what_closed_it(desk):
    whole = desk.house.journal
    desk.house.journal = damaged = given_delivered("A1,2", "A3").journal
    without_head(desk.house)
    desk.reconcile()
    assert damaged is desk.house.journal

    desk.house.journal = whole
    said = desk.reopen()

    assert desk.gate is None
    assert said == ["orders/journal: 1 entity: 1 as the log says; 1 pointer; up to id 1"]
    deed = desk.house.positions.deeds("journal")[-1]
    assert (deed.what, deed.who) == ("open", "ann")


@pytest.mark.parametrize("damage", [without_head, with_pointer_too_far])
def test_the_gate_stays_closed_while_anything_is_different(desk, damage):
    damage(desk.house)
    desk.reconcile()
    with pytest.raises(StillDifferent, match="rebuild them with a writer of another keyspace"):
        desk.reopen()
    assert desk.gate is not None


def test_the_gate_stays_closed_where_more_is_different_than_was_told(desk, monkeypatch):
    with_changed_row(desk.house)
    with_pointer_too_far(desk.house)
    monkeypatch.setattr(Reconciliation, "names_all_differences", False)
    desk.reconcile()
    with pytest.raises(StillDifferent, match="verify everything: tidemark journal verify orders journal"):
        desk.reopen()


def test_the_gate_stays_closed_without_a_record(desk, tmp_path):
    with_changed_row(desk.house)
    desk.reconcile()
    (record,) = tmp_path.rglob("*.json")
    record.unlink()
    with pytest.raises(StillDifferent, match="there is no record"):
        desk.reopen()
