"""A collection of operations: delivered in bulk, in parts, one at a time, again, and after a recreation."""

import pytest
from tests.support.faults import Killed
from tests.support.log_samples import compact
from tests.support.memory_collection import TOPIC
from tests.support.oplog_world import OplogWorld

from tidemark.delivery.compacted_history import HistoryCompacted
from tidemark.delivery.state.writer_state import Cause
from tidemark.writers.collection import writer as module

pytestmark = pytest.mark.unit


@pytest.fixture
def world(tmp_path):
    return OplogWorld(tmp_path)


def test_deletes_stay_as_rows(world):
    world.publish_records("x y y~")
    done = world.deliver(world.started())
    assert world.objects() == {"x": "insert", "y": "delete"}
    assert done.total.details == {"rows": 2, "deletes": 1}


def test_a_correction_is_judged_by_the_rows_of_earlier_bindings(world):
    world.publish_records("x y")
    world.publish_records("x~@1 y~@1")
    done = world.deliver(world.started())
    assert world.written == ["x=insert", "y=insert", "x=delete"]
    assert (done.total.written, done.total.ignored) == (3, 1)


def test_a_correction_of_an_object_that_was_never_seen_counts(world):
    world.publish_records("x")
    world.publish_records("y@1")
    world.deliver(world.started())
    assert world.objects() == {"x": "insert", "y": "insert"}


def test_a_delete_voids_a_correction_as_much_as_any_operation(world):
    world.publish_records("x x~")
    world.publish_records("x@1")
    world.deliver(world.started())
    assert world.objects() == {"x": "delete"}


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
def test_the_result_does_not_depend_on_how_much_is_read_at_once(world, monkeypatch, at_once):
    monkeypatch.setattr(module, "MESSAGES_AT_ONCE", at_once)
    world.publish_records("x y")
    world.publish_records("x+ x~@1 y~@2 y@2 y+ y~@7")
    world.deliver(world.started())
    assert world.written == ["x=insert", "y=insert", "x=update", "y=delete", "y=update", "y=delete"]


@pytest.mark.parametrize("a_part", [1, 2, 100])
def test_the_result_does_not_depend_on_the_number_of_parts(world, monkeypatch, a_part):
    monkeypatch.setattr(module, "MESSAGES_A_PART", a_part)
    world.publish_records("x y", "z")
    world.publish_records("x+ x~@1 y~@2 y@2", "z~@1 z@1")
    world.deliver(world.started())
    assert world.objects() == {"x": "update", "y": "delete", "z": "delete"}
    assert len(world.collection.rows) == 6


def test_one_at_a_time_gives_the_same_as_in_bulk(world):
    world.publish_records("x y")

    def fails(done):
        raise ConnectionError("no answer")

    world.publish_records("x+ x~@1 y~@2 y@2 y+ y~@7")
    world.deliver(world.started(fails))
    assert world.gate(world.started()).cause is Cause.TARGET
    world.resume(world.started())
    assert world.gate(world.started()) is None
    world.deliver(world.started())
    assert world.written == ["x=insert", "y=insert", "x=update", "y=delete", "y=update", "y=delete"]


def test_one_at_a_time_a_correction_sees_what_was_just_delivered(world):
    world.publish_records("x? x x~@0 x~@2")
    world.deliver(world.started())
    assert world.gate(world.started()).first_id == 0
    world.acknowledge(world.started(), 0, untried=False)
    world.resume(world.started())
    assert world.written == ["x=insert", "x=delete"]
    assert world.gate(world.started()) is None


def test_a_message_that_is_no_operation_stops_the_writer_at_its_id(world):
    world.publish_records("x y? z")
    world.deliver(world.started())
    gate = world.gate(world.started())
    assert (gate.cause, gate.first_id, world.position(world.started())) == (Cause.MESSAGE, 1, 0)
    assert world.written == ["x=insert"]


def test_delivering_again_changes_nothing_and_agrees_with_the_digests(world):
    world.publish_records("x y")
    world.publish_records("x+ x~@1 y~@2 y@2")
    world.publish_records("x~ y+")
    world.deliver(world.started())
    before, digests = world.collection.rows, world.digests
    again = world.deliver_again(world.started())
    assert again.failure is None
    assert (world.collection.rows, world.digests) == (before, digests)


def test_a_writer_that_was_killed_in_the_middle_gives_the_same(world):
    world.publish_records("x y")
    world.publish_records("x+ x~@1 y~@2 y@2")

    def dies(done):
        if done == 3:
            raise Killed

    with pytest.raises(Killed):
        world.deliver(world.started(dies))
    world.live_again()
    world.clock.pass_seconds(1_000)
    world.deliver(world.started())
    assert world.written == ["x=insert", "y=insert", "x=update", "y=delete"]


def test_a_rewound_writer_gives_the_same_in_empty_tables(world):
    world.publish_records("x y")
    world.publish_records("x+ x~@1 y~@2 y@2")
    world.deliver(world.started())
    before = world.written
    world.collection.drop()
    world.deliver(world.started())
    world.rewind("accounts", -1)
    world.deliver(world.started())
    assert world.written == before
    assert world.gate(world.started()) is None


def test_operations_of_an_earlier_topic_void_nothing(world):
    world.publish_records("x y z")
    world.deliver(world.started())
    world.recreate_topic("second")
    world.publish_records("x@0 y~@0!first")
    done = world.deliver(world.started())
    assert world.objects() == {"x": "insert", "y": "insert", "z": "insert"}
    assert (done.total.written, done.total.ignored) == (1, 1)


def test_an_operation_of_the_recreated_topic_voids_as_before(world):
    world.publish_records("x y z")
    world.deliver(world.started())
    world.recreate_topic("second")
    world.publish_records("x")
    world.publish_records("x~@0 x~@1")
    world.deliver(world.started())
    assert world.written == ["x=insert", "y=insert", "z=insert", "x=insert", "x=delete"]
    assert world.deliver_again(world.started()).failure is None


def test_a_key_may_be_in_another_partition_of_a_recreated_topic(world):
    world.publish_records("x y", "z")
    world.deliver(world.started())
    world.recreate_topic("second")
    world.publish_records("z~", "x+")
    world.deliver(world.started())
    assert world.gate(world.started()) is None
    assert world.objects() == {"x": "update", "y": "insert", "z": "delete"}


def test_a_key_in_two_partitions_is_a_bad_message_also_where_it_would_be_void(world):
    world.publish_records("x", "y")
    world.publish_records("y~@0", "")
    world.deliver(world.started())
    assert "its key was in partition 1 of accounts before" in world.gate(world.started()).reason


def test_rows_that_were_removed_leave_a_binding_that_is_not_computed_again(world):
    world.publish_records("x")
    second = world.publish_records("x~@0 y")
    third = world.publish_records("x+")
    world.deliver(world.started())
    world.started().target.drop_versions(third.t)
    again = world.deliver_again(world.started(), second.t, second.t)
    assert "cannot be computed again: id 1 is a correction" in again.failure
    assert world.gate(world.started()) is None


def test_rows_that_were_removed_leave_the_rest_as_it_was(world):
    world.publish_records("x")
    second = world.publish_records("x~@1 y")
    world.publish_records("y+ z@3")
    world.deliver(world.started())
    world.started().target.drop_versions(second.t)
    assert world.deliver_again(world.started()).failure is None


def test_nothing_is_read_where_there_are_no_corrections(world):
    world.publish_records("x y x+")
    world.deliver(world.started())
    trial = world.started().trial()
    assert trial.target.looked_up == []
    assert world.deliver_again(world.started()).failure is None


def test_the_topics_id_is_that_of_the_binding(world):
    binding = world.publish_records("x")
    assert binding.topic_ids[TOPIC] == world.topic_id


# A compacted log


def test_a_collection_may_begin_with_what_policy_oplog_left(world):
    world.publish_records("x y x~@0 y~@2")
    world.publish_records("x~@0 y@3 z@0")
    compact(world.control, world.log.folder, 4, keep=lambda id_: id_ in (0, 3), policy="oplog")
    world.deliver(world.started())
    assert world.objects() == {"x": "insert", "y": "delete", "z": "insert"}
    assert world.found.rendition(1).since == 2_000


@pytest.mark.parametrize("policy", ["latest", "progress"])
def test_a_log_that_was_compacted_otherwise_is_refused(world, policy):
    world.publish_records("x y x~@0")
    world.publish_records("x")
    compact(world.control, world.log.folder, 3, keep=lambda id_: id_ != 0, policy=policy)
    with pytest.raises(HistoryCompacted, match=rf"another policy than `oplog` \({policy}\)"):
        world.deliver(world.started())
