"""A kafka writer's topic against the log: last ids, ids before them, and what redelivery can mend (item 7).

The broker is stood in for by lists; real Kafka is in tests/system/test_verify_outputs.py.
"""

from collections import defaultdict
from dataclasses import replace

import pytest
from tests.support.memory_partition import MemoryPartition
from tests.support.pipeline_world import PipelineWorld

from tidemark.connections import KafkaConnection
from tidemark.delivery.operator.action_plan import NotPossible
from tidemark.delivery.state.positions import ShapeChanged
from tidemark.delivery.state.writer_state import Cause
from tidemark.verification.outputs import topics
from tidemark.verification.outputs.accept_missing import plan_let_go
from tidemark.verification.outputs.found import Extent, OutputProblem, OutputVerification
from tidemark.verification.outputs.reconcile import reconcile_output, verify_output
from tidemark.verification.outputs.repair import NotMended, mend_output
from tidemark.verification.outputs.topics import Compared, compare_ids, first_compared
from tidemark.writers.kafka import output as kafka_output
from tidemark.writers.kafka import writer as kafka
from tidemark.writers.kafka.kind import KafkaDeclaration
from tidemark.writers.kafka.last_id import PartitionEnd
from tidemark.writers.kafka.target import DescribedTopic, NoTargetTopic
from tidemark.writers.kafka.writer import KafkaWriter

pytestmark = pytest.mark.unit

ALL = Extent(everything=True)
SOME = Extent(1_000)


class Broker:
    """The topic as a broker tells of it."""

    def __init__(self) -> None:
        self.id: str | None = "first"
        self.begins_at = defaultdict[int, int](int)
        self.partitions = 2
        self.compacts = False
        self.most: int | None = None
        """How many messages were asked for last."""

    def describe(self, target) -> DescribedTopic:
        if self.id is None:
            raise NoTargetTopic(target)
        return DescribedTopic(self.id, self.partitions)

    def tail(self, target, number: int, most: int | None) -> PartitionEnd:
        self.most = most
        ids = MemoryPartition.holds.get(number, [])
        kept = ids if most is None else ids[-most:]
        return PartitionEnd(tuple(kept), self.begins_at[number], len(kept) == len(ids))


class Desk:
    """Where a house's topic is verified: ids 0 to 8, even ones in partition 0, odd ones in partition 1."""

    def __init__(self, house: PipelineWorld, broker: Broker) -> None:
        self.house, self.broker = house, broker
        declared = {"name": "out", "kind": "kafka", "topic": "copy"}
        declaration = KafkaDeclaration.model_validate(declared, context={})
        self.writer = KafkaWriter("orders", declaration, KafkaConnection(servers="127.0.0.1:1"))
        self.compacted_below = 0
        for letters in ("abc", "def", "ghi"):
            house.publish(orders=letters)
        house.deliver(self.writer)

    @property
    def holds(self) -> dict[int, list[int]]:
        return MemoryPartition.holds

    def verify(self, extent: Extent = SOME) -> OutputVerification:
        found = verify_output(self.writer, self.house.log, self.house.positions, extent)
        assert found is not None
        return found

    def reconcile(self, extent: Extent = SOME):
        root = str(self.house.root / "log")
        return reconcile_output(self.verify(extent), self.house.positions, root, "run", self.house.clock)

    def mend(self):
        house = self.house
        return mend_output(
            self.writer, house.log, house.positions, self.gate, "ann", house.shown.append, house.clock
        )

    @property
    def gate(self):
        return self.house.gate(self.writer)


@pytest.fixture
def broker(monkeypatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr(kafka_output, "OutputPartition", MemoryPartition)
    monkeypatch.setattr(kafka_output, "_kept", {})
    for name, empty in {"holds": {}, "opened": [], "closed": []}.items():
        monkeypatch.setattr(MemoryPartition, name, empty)
    monkeypatch.setattr(kafka, "describe_topic", broker.describe)
    monkeypatch.setattr(kafka, "count_partitions", lambda target: broker.describe(target).partitions)
    monkeypatch.setattr(kafka, "read_tail", broker.tail)
    monkeypatch.setattr(topics, "read_tail", broker.tail)
    monkeypatch.setattr(topics, "keeps_the_middle", lambda _: not broker.compacts)
    # Keys are all the same; by their ids they go to both partitions.
    monkeypatch.setattr(kafka, "partition_of", lambda key, id_, count: id_ % count)
    return broker


@pytest.fixture
def desk(tmp_path, broker) -> Desk:
    return Desk(PipelineWorld(tmp_path), broker)


# Deciding


def test_what_is_missing_at_the_end_is_told_from_what_is_missing_between():
    assert compare_ids([1, 3, 5, 7, 9], [0, 1, 5]) == Compared((7, 9), (3,))
    assert compare_ids([1, 3], []) == Compared((1, 3), ())
    assert compare_ids([], [4]) == Compared((), ())


@pytest.mark.parametrize(
    ("tail", "since", "floor", "first"),
    [
        (PartitionEnd((4, 6), 0, True), 0, 0, 0),
        (PartitionEnd((4, 6), 0, True), 3, 0, 3),
        (PartitionEnd((4, 6), 0, True), None, 0, 4),
        (PartitionEnd((), 0, True), 0, 0, 0),
        (PartitionEnd((), 0, True), None, 0, None),
        (PartitionEnd((4, 6), 0, False), 0, 0, 4),
        (PartitionEnd((4, 6), 9, True), 0, 0, 4),
        (PartitionEnd((), 9, True), 0, 0, None),
        (PartitionEnd((4, 6), 0, True), 0, 5, 5),
    ],
)
def test_from_where_on_a_partition_can_be_judged(tail, since, floor, first):
    assert first_compared(tail, since, floor) == first


# Looking


def test_i07_a_topic_that_has_everything_is_clean(desk):
    found = desk.verify()
    assert (found.is_clean, found.summary) == (True, "2 partitions, 9 messages compared; up to id 8")
    assert desk.verify(ALL).is_clean
    assert desk.broker.most is None


def test_i07_what_is_missing_at_the_end_is_noticed(desk):
    desk.holds[1] = [1, 3]
    (found,) = desk.verify(Extent(1)).differences
    assert (found.problem, found.said) == (
        OutputProblem.END,
        "partition 1: 2 messages missing at its end (id 5, 7)",
    )


def test_i07_a_hole_is_noticed_and_said_to_need_another_topic(desk):
    desk.holds[0] = [0, 4, 6, 8]
    found = desk.verify()
    assert [one.problem for one in found.differences] == [OutputProblem.HOLE]
    assert "make it again" in found.way
    assert "tidemark offsets rewind orders out -1" in found.way


def test_i07_a_hole_at_the_beginning_is_noticed_where_the_partition_is_looked_at_whole(desk):
    desk.holds[0] = [6, 8]
    assert [one.problem for one in desk.verify().differences] == [OutputProblem.HOLE]


def test_what_retention_took_from_the_beginning_is_no_hole(desk):
    desk.holds[0], desk.broker.begins_at[0] = [6, 8], 7
    assert desk.verify().is_clean


def test_what_retention_took_whole_is_not_provable(desk):
    desk.holds[0], desk.broker.begins_at[0] = [], 7
    found = desk.verify()
    assert (found.is_clean, sum(found.not_provable.values())) == (True, 1)


def test_of_a_topic_that_kafka_compacts_only_the_ends_are_judged(desk):
    desk.broker.compacts = True
    desk.holds[0] = [0, 8]
    assert desk.verify().is_clean
    desk.holds[0] = [0, 6]
    assert [one.problem for one in desk.verify().differences] == [OutputProblem.END]


def test_only_so_many_are_compared_where_nothing_else_is_asked_for(desk):
    desk.holds[0] = [0, 4, 6, 8]
    assert desk.verify(Extent(3)).is_clean


def test_what_is_beyond_the_position_is_not_asked_for(desk):
    desk.house.operator.rewind("out", 5, desk.writer).execute(desk.house.deed("rewind"))
    desk.holds[0], desk.holds[1] = [0, 2, 4], [1, 3, 5]
    assert desk.verify().is_clean


def test_i07_a_topic_that_was_made_again_closes_the_gate_for_that(desk):
    desk.broker.id, MemoryPartition.holds = "second", {}
    record = desk.reconcile()
    assert (record.passed, desk.gate.cause) == (False, Cause.REPLACED)
    assert "second" in desk.gate.reason
    assert "offsets rewind orders out -1" in desk.gate.reason


def test_a_topic_that_is_gone_is_a_difference_too(desk):
    desk.broker.id = None
    assert "Kafka has no topic copy" in desk.verify().differences[0].said


# Settings that would make another output


def given_setting(desk: Desk, **changed: str) -> None:
    """The file says something else by now."""
    declared = {"name": "out", "kind": "kafka", "topic": "copy"} | changed
    desk.writer = replace(desk.writer, declared=KafkaDeclaration.model_validate(declared, context={}))


def test_partitions_that_were_added_are_said_and_nothing_is_called_missing(desk):
    desk.broker.partitions = 3
    with pytest.raises(ShapeChanged, match="partitions was 2 and is now 3"):
        desk.reconcile()
    assert desk.gate is None


def test_with_other_partitions_a_topic_that_was_made_again_is_still_another_one(desk):
    desk.broker.id, desk.broker.partitions, MemoryPartition.holds = "second", 3, {}
    assert desk.verify().is_replaced


def test_messages_that_other_namespaces_would_take_are_not_missing(desk):
    given_setting(desk, namespaces="^refunds$")
    with pytest.raises(ShapeChanged, match=r"namespaces was '\.\*' and is now '\^refunds\$'"):
        desk.reconcile()
    assert desk.gate is None


@pytest.mark.parametrize("id_", ["second", None], ids=["there", "not there"])
def test_another_topic_in_the_file_is_not_one_that_was_deleted(desk, id_):
    given_setting(desk, topic="elsewhere")
    desk.broker.id = id_
    with pytest.raises(ShapeChanged, match="topic was 'copy' and is now 'elsewhere'"):
        desk.reconcile()
    assert desk.gate is None


def test_a_resume_delivers_nothing_again_by_other_settings(desk):
    desk.holds[1] = [1, 3]
    desk.reconcile()
    desk.broker.partitions = 3
    with pytest.raises(ShapeChanged):
        desk.mend()
    assert (desk.holds[1], desk.gate.cause) == ([1, 3], Cause.VERIFICATION)
    assert desk.house.state(desk.writer).lease is None


# Mending


def test_i07_what_is_missing_at_the_end_is_sent_again(desk):
    desk.holds[1] = [1, 3]
    desk.reconcile()
    assert desk.gate.cause is Cause.VERIFICATION
    resumed = desk.mend()
    assert (resumed.delivered, resumed.gate, desk.gate) == (2, None, None)
    assert desk.holds == {0: [0, 2, 4, 6, 8], 1: [1, 3, 5, 7]}


def test_i07_a_hole_is_not_mended_in_place_but_by_a_rewind_into_a_new_topic(desk):
    desk.holds[0] = [0, 4, 6, 8]
    desk.reconcile()
    with pytest.raises(NotMended, match="cannot be sent any more"):
        desk.mend()
    desk.broker.id, MemoryPartition.holds = "second", {}
    desk.house.operator.rewind("out", -1, desk.writer).execute(desk.house.deed("rewind"))
    assert desk.gate is None
    desk.house.deliver(desk.writer)
    assert desk.holds == {0: [0, 2, 4, 6, 8], 1: [1, 3, 5, 7]}
    assert desk.verify(ALL).is_clean


def test_a_hole_deeper_than_the_sample_is_looked_for_before_the_gate_opens(desk):
    declared = desk.writer.declared.model_copy(update={"reconcile": 2})
    desk.writer = replace(desk.writer, declared=declared)
    desk.holds[0].remove(2)
    desk.reconcile(ALL)
    with pytest.raises(NotMended, match="between others"):
        desk.mend()


def test_what_is_another_topic_by_now_stays_closed_for_that(desk):
    desk.holds[1] = [1, 3]
    desk.reconcile()
    desk.broker.id, MemoryPartition.holds = "second", {}
    resumed = desk.mend()
    assert (resumed.gate.cause, desk.gate.cause) == (Cause.REPLACED, Cause.REPLACED)


def test_a_gate_that_was_opened_meanwhile_is_left_alone(desk):
    desk.holds[1] = [1, 3]
    desk.reconcile()
    gate = desk.gate
    desk.house.operator.open("out").execute(desk.house.deed("open"))
    house = desk.house
    resumed = mend_output(desk.writer, house.log, house.positions, gate, "ann", print, house.clock)
    assert (resumed.gate, desk.holds[1]) == (None, [1, 3])


def given_late(desk: Desk, letters: str) -> None:
    """Another writer with ``start: latest`` after id 8, to a topic of its own, and what it was delivered."""
    declared = {"name": "late", "kind": "kafka", "topic": "late", "start": "latest"}
    declaration = KafkaDeclaration.model_validate(declared, context={})
    desk.writer = replace(desk.writer, declared=declaration)
    desk.holds.clear()
    desk.house.deliver(desk.writer, start=8)
    desk.house.publish(orders=letters)
    desk.house.deliver(desk.writer)


def test_a_rewind_to_before_the_start_that_sends_nothing_leaves_no_hole(desk):
    given_late(desk, "jkl")
    plan = desk.house.operator.rewind("late", 3, desk.writer)
    assert "0 messages are sent to topic late" in plan.lines
    plan.execute(desk.house.deed("rewind"))
    desk.house.deliver(desk.writer)
    assert (desk.holds, desk.verify().is_clean) == ({0: [10], 1: [9, 11]}, True)


def test_messages_of_a_topic_cannot_be_let_go(desk):
    with pytest.raises(NotPossible, match="only files can be let go"):
        plan_let_go(desk.writer, desk.house.log, desk.house.positions)


def of_older_version(desk: Desk) -> None:
    state = desk.house.state(desk.writer)
    desk.house.positions._store(replace(state, target=None, since=None))


def test_i03_an_older_writer_whose_topic_was_emptied_by_retention_goes_on(desk):
    of_older_version(desk)
    desk.holds[0], desk.broker.begins_at[0] = [], 7
    desk.house.publish(orders="jk")
    assert desk.house.deliver(desk.writer).gate is None
    assert (desk.house.state(desk.writer).target, desk.holds[0]) == ("first", [10])


def test_an_older_writer_is_judged_from_the_beginning(desk):
    of_older_version(desk)
    desk.holds[0] = [6, 8]
    assert [one.problem for one in desk.verify().differences] == [OutputProblem.HOLE]


def test_of_an_older_writer_that_began_later_an_empty_partition_is_not_provable(desk):
    given_late(desk, "j")
    of_older_version(desk)
    found = desk.verify()
    assert (found.is_clean, dict(found.not_provable)) == (True, {topics.NO_START: 1})
    desk.reconcile()
    assert (desk.gate, desk.holds) == (None, {1: [9]})


def test_of_an_older_writer_that_began_later_the_end_of_a_partition_is_still_judged(desk):
    given_late(desk, "jkl")
    of_older_version(desk)
    desk.holds[1].remove(11)
    assert [one.problem for one in desk.verify().differences] == [OutputProblem.END]
