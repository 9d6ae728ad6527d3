"""Topics whose partition count is fixed: recorded once, and another number closes the log's gate."""

from dataclasses import replace

import pytest
from tests.support.log_samples import given_kafka, mark_published

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.memory import MemoryConsensus
from tidemark.log.accept import accept, require_closed_gate
from tidemark.log.bind import OffsetsLost, PartitionsChanged, bind
from tidemark.log.fixed_topics import TopicHasNoId, record_topic, recorded_topic
from tidemark.log.model.binding import Available, Offsets
from tidemark.log.model.fixed_partitions import FixedPartitions, FixedTopic, PartitionChange
from tidemark.log.model.gate import LogGate, LogGateCause
from tidemark.log.state.control import LogControl

pytestmark = pytest.mark.unit

ANN = AuditEntry("accept", "ann", "nothing else sends to it", 7_000)


def given_topic(partitions: int, records: int = 1, **made_again: str) -> Available:
    places = {("oplog", number): Offsets(0, records) for number in range(partitions)}
    return given_kafka(places, **made_again)


@pytest.fixture
def control() -> LogControl:
    return LogControl(MemoryConsensus(), "oplog")


def run(control: LogControl, kafka: Available, number: int, *, fixes: bool = True):
    binding = bind(control, kafka, 100, 1_000_000 * number, f"run-{number}", fixes_partitions=fixes)
    if binding is not None:
        mark_published(control, binding)
    return binding


def test_the_first_bind_records_the_topic(control):
    run(control, given_topic(4), 1)
    assert recorded_topic(control, "oplog") == FixedTopic("oplog", "first oplog", 4)


def test_a_bind_that_binds_nothing_records_it_too(control):
    assert run(control, given_topic(4, records=0), 1) is None
    assert control.bindings_head().partitions == {"oplog": FixedPartitions(4, 4)}


def test_other_formats_record_nothing_and_take_further_partitions(control):
    run(control, given_topic(2), 1, fixes=False)
    assert run(control, given_topic(3, 2), 2, fixes=False) is not None
    assert control.bindings_head().partitions == {}
    assert recorded_topic(control, "oplog") is None


def test_another_number_closes_the_gate_and_binds_nothing(control):
    run(control, given_topic(2), 1)
    with pytest.raises(PartitionsChanged) as raised:
        run(control, given_topic(3, 2), 2)
    assert "has 3 partitions, and the partitions of its keys are computed by 2" in str(raised.value)
    gate = control.log_gate()
    assert (gate.cause, gate.partitions) == (LogGateCause.PARTITIONS, (PartitionChange("oplog", 2, 3),))
    assert control.bindings_head().reached == {("oplog", 0): 1, ("oplog", 1): 1}


def test_the_gate_comes_back_from_its_row(control):
    change = (PartitionChange("oplog", 2, 3),)
    gate = LogGate(LogGateCause.PARTITIONS, "…", None, None, (), None, 5, change)
    assert LogGate.from_json(gate.to_json()) == gate
    lost = LogGate(LogGateCause.LOST, "…", None, None, (), None, 5)
    assert "partitions" not in lost.to_json()


def test_the_gate_opens_by_itself_when_the_number_is_what_it_was(control):
    run(control, given_topic(2), 1)
    with pytest.raises(PartitionsChanged):
        run(control, given_topic(3), 2)
    run(control, given_topic(2, 2), 3)
    assert control.log_gate() is None


def test_accepting_further_partitions_keeps_the_number_by_which_they_are_computed(control):
    run(control, given_topic(2), 1)
    with pytest.raises(PartitionsChanged):
        run(control, given_topic(3, 2), 2)
    accept(control, require_closed_gate(control), ANN)
    assert control.log_gate() is None
    assert control.bindings_head().partitions == {"oplog": FixedPartitions(2, 3)}
    assert run(control, given_topic(3, 2), 3).t > 0
    assert recorded_topic(control, "oplog").partitions == 2


def test_a_further_change_after_an_acceptance_closes_the_gate_again(control):
    run(control, given_topic(2), 1)
    for found, number in ((3, 2), (4, 3)):
        with pytest.raises(PartitionsChanged):
            run(control, given_topic(found), number)
        accept(control, require_closed_gate(control), ANN)
    assert control.bindings_head().partitions == {"oplog": FixedPartitions(2, 4)}


def test_a_killed_acceptance_is_finished_by_the_next_run(control):
    run(control, given_topic(2), 1)
    with pytest.raises(PartitionsChanged):
        run(control, given_topic(3, 2), 2)
    gate = require_closed_gate(control)
    accept(control, gate, ANN)
    control.close_gate(gate)  # as if the process had died between the two steps
    assert run(control, given_topic(3, 2), 3) is not None
    assert control.log_gate() is None


def test_a_recreated_topic_is_recorded_anew(control):
    run(control, given_topic(4), 1)
    again = given_topic(2, oplog="second oplog")
    with pytest.raises(OffsetsLost):
        run(control, again, 2)
    accept(control, require_closed_gate(control), ANN)
    assert recorded_topic(control, "oplog") is None
    run(control, again, 3)
    assert recorded_topic(control, "oplog") == FixedTopic("oplog", "second oplog", 2)


def test_an_agent_may_record_the_topic_before_the_first_bind(control):
    found = record_topic(control, given_topic(4), "oplog")
    assert found == recorded_topic(control, "oplog") == FixedTopic("oplog", "first oplog", 4)
    with pytest.raises(PartitionsChanged):
        run(control, given_topic(5), 1)


def test_what_is_recorded_stays_whatever_the_topic_has_now(control):
    record_topic(control, given_topic(4), "oplog")
    assert record_topic(control, given_topic(5), "oplog").partitions == 4


def test_a_topic_that_was_recreated_before_anything_was_bound_closes_the_gate(control):
    record_topic(control, given_topic(4), "oplog")
    with pytest.raises(OffsetsLost):
        run(control, given_topic(4, oplog="second oplog"), 1)


def test_of_two_agents_the_first_one_records_the_topic(control, monkeypatch):
    real, seen = LogControl.bindings_head, []

    def read_before_the_other_one_writes(self):
        head = real(self)
        if not seen:
            seen.append(head)
            fixed = {"oplog": FixedPartitions(4, 4)}
            self.replace_head(head, replace(head, partitions=fixed, topic_ids={"oplog": "first oplog"}))
        return head

    monkeypatch.setattr(LogControl, "bindings_head", read_before_the_other_one_writes)
    assert record_topic(control, given_topic(6), "oplog").partitions == 4


def test_a_topic_without_an_id_is_refused(control):
    with pytest.raises(TopicHasNoId, match="Nothing was recorded"):
        record_topic(control, Available({("oplog", 0): Offsets(0, 1)}, {}), "oplog")


def test_a_head_of_an_earlier_version_has_no_counts(control):
    run(control, given_topic(2), 1, fixes=False)
    assert '"partitions"' not in control.bindings_head().to_json()
    run(control, given_topic(2, 2), 2)
    assert control.bindings_head().partitions == {"oplog": FixedPartitions(2, 2)}
