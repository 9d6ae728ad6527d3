"""Verification of a collection: what is committed, what the log makes, and what is in the tables."""

import pytest
from tests.support.memory_collection import CollectionWorld

from tidemark.delivery.state.writer_state import Cause
from tidemark.verification.outputs import collection as verification
from tidemark.verification.outputs.collection import NO_DIGESTS, TOO_MANY
from tidemark.verification.outputs.found import Extent, OutputProblem
from tidemark.verification.outputs.reconcile import reconcile_now, usual_extent, verify_output
from tidemark.verification.outputs.repair import NotMended, mend_output

pytestmark = pytest.mark.unit

ALL = Extent(everything=True)


@pytest.fixture
def world(tmp_path):
    world = CollectionWorld(tmp_path)
    world.publish_records("a=1 b=2")
    world.publish_records("a=3 b")
    world.deliver(world.started())
    return world


def verified(world, extent=ALL):
    found = verify_output(world.started(), world.log, world.positions, extent)
    assert found is not None
    return found


def lose(world, id_):
    (row,) = [row for row in world.collection.rows if row.message_id == id_]
    del world.collection._cells[row.key, row.t, row.message_id]
    return row


def test_a_collection_that_is_as_it_was_delivered_is_clean(world):
    found = verified(world)
    assert (found.is_clean, found.looked_at, found.not_provable) == (True, {"bindings": 2}, {})


def test_after_a_delivery_the_newest_binding_is_compared(world):
    lose(world, 0)
    usual = usual_extent(world.started())
    assert usual is not None
    assert verified(world, usual).is_clean
    lose(world, 2)
    assert not verified(world, usual).is_clean


def test_missing_rows_close_the_gate_and_a_resume_writes_them_again(world):
    rows = world.collection.rows
    lose(world, 2)
    done = reconcile_now(world.started(), world.log, world.positions, ALL, "run")
    assert done is not None
    assert not done["passed"]
    gate = world.gate(world.started())
    assert gate is not None
    assert (gate.cause, "1 of its 2 rows are missing" in gate.reason) == (Cause.VERIFICATION, True)
    mend_output(world.started(), world.log, world.positions, gate, "resume", print, world.clock)
    assert world.gate(world.started()) is None
    assert world.collection.rows == rows


def test_rows_that_are_others_are_not_written_over(world):
    row = lose(world, 2)
    (other,) = [one for one in world.collection.rows if one.message_id == 0]
    world.collection.put((row.key, row.t, row.message_id), row.write_time, _with_values(row, other))
    found = verified(world)
    assert [one.problem for one in found.differences] == [OutputProblem.CONTENT]
    assert "another name" in found.way
    reconcile_now(world.started(), world.log, world.positions, ALL, "run")
    gate = world.gate(world.started())
    with pytest.raises(NotMended):
        mend_output(world.started(), world.log, world.positions, gate, "resume", print, world.clock)


def _with_values(row, other):
    return row._replace(values=other.values)


def test_a_transform_that_makes_other_rows_now_is_a_difference(tmp_path):
    transform = {"function": {"path": "tests.support.collection_samples.with_time"}}
    columns = {"owner": "text", "balance": "int", "seen": "bigint"}
    world = CollectionWorld(tmp_path, transforms=[transform], columns=columns)
    world.publish_records("a=1")
    world.deliver(world.started())
    (difference,) = verified(world).differences
    assert (difference.problem, difference.where) == (OutputProblem.CONTENT, "1000")
    assert "the log makes rows with digest" in difference.said


def test_a_table_that_is_gone_is_a_target_that_was_replaced(world):
    world.collection.drop()
    assert verified(world).is_replaced


def test_a_binding_without_digests_is_not_provable(world):
    from tidemark.consensus.objects import Change

    key = world.positions.key("accounts")
    row = f"digest/{1_000:020d}"
    world.consensus.commit(key, world.state(world.started()).version, Change(deletes=[row]))
    found = verified(world)
    assert (found.is_clean, found.not_provable) == (True, {NO_DIGESTS: 1})


def test_a_sample_leaves_out_large_bindings(world, monkeypatch):
    monkeypatch.setattr(verification, "MOST_MESSAGES", 1)
    assert verified(world, Extent(2)).not_provable == {TOO_MANY: 2}
    assert verified(world).looked_at == {"bindings": 2}
