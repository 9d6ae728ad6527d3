"""Verification of a collection of operations: void corrections are computed with the rows before them."""

import pytest
from tests.support.oplog_world import OplogWorld

from tidemark.verification.outputs.collection import EARLIER_MISSING, FORGOTTEN
from tidemark.verification.outputs.found import Extent, OutputProblem
from tidemark.verification.outputs.reconcile import reconcile_now, verify_output

pytestmark = pytest.mark.unit

ALL = Extent(everything=True)


@pytest.fixture
def world(tmp_path):
    world = OplogWorld(tmp_path)
    world.publish_records("x y z~")
    world.publish_records("x~@0 y~@2 z@2")
    world.publish_records("x+ y@1")
    world.deliver(world.started())
    return world


def verified(world, extent=ALL):
    found = verify_output(world.started(), world.log, world.positions, extent)
    assert found is not None
    return found


def lose(world, id_):
    (row,) = [row for row in world.collection.rows if row.message_id == id_]
    del world.collection._cells[row.key, row.t, row.message_id]


def test_what_was_delivered_is_what_the_log_makes(world):
    found = verified(world)
    assert (found.is_clean, found.looked_at, found.not_provable) == (True, {"bindings": 3}, {})


def test_after_a_recreated_topic_it_still_is(world):
    world.recreate_topic("second")
    world.publish_records("x@0 y@0!first z~")
    world.deliver(world.started())
    assert verified(world).is_clean


def test_a_lost_row_is_the_one_difference_and_a_resume_writes_it_again(world):
    lose(world, 2)  # z is void at 2000 because of it
    found = verified(world)
    assert [(one.problem, one.first_id) for one in found.differences] == [(OutputProblem.MISSING, 0)]
    assert found.not_provable == {EARLIER_MISSING: 1}
    done = reconcile_now(world.started(), world.log, world.positions, ALL, "run")
    assert done is not None
    assert not done["passed"]


def test_a_lost_row_that_decided_about_a_correction_with_rows_after_it(world):
    lose(world, 0)
    found = verified(world)
    assert [(one.problem, one.first_id) for one in found.differences] == [(OutputProblem.MISSING, 0)]
    assert found.not_provable == {EARLIER_MISSING: 1}


def test_a_row_of_a_void_correction_is_a_difference(world):
    (row,) = [row for row in world.collection.rows if row.message_id == 4]
    void = row._replace(message_id=3, key=(b"video", b"x"), offset=3)
    world.collection.put((void.key, void.t, void.message_id), void.write_time, void)
    assert [one.problem for one in verified(world).differences] == [OutputProblem.CONTENT]


def test_forgotten_times_are_not_compared(world):
    found = verified(world)
    assert FORGOTTEN not in found.not_provable
