"""A key of a topic comes from one partition: in a binding, between bindings, in bulk and one at a time."""

import pytest
from tests.support.memory_collection import CollectionWorld

from tidemark.delivery.binding_steps import write_part
from tidemark.delivery.state.writer_state import Cause

pytestmark = pytest.mark.unit


@pytest.fixture
def world(tmp_path):
    return CollectionWorld(tmp_path)


def in_turn(order):
    """Parts are written one after the other, in an order; their results come in that of the parts."""

    def write_parts(writer, parts, log, acknowledged, ticket):
        done = {i: write_part(writer, parts[i], log, acknowledged, ticket) for i in order(range(len(parts)))}
        return [done[i] for i in sorted(done)]

    return write_parts


def all_at_once(world):
    """No part sees what another one writes."""

    def write_parts(writer, parts, log, acknowledged, ticket):
        seen = world.collection.rows
        done = []
        for part in parts:
            blind = world.started()
            blind.memory.origins = lambda t, keys: {} if not seen else world.started().memory.origins(t, keys)
            done.append(write_part(blind, part, log, acknowledged, ticket))
        return done

    return write_parts


def gate_of(world):
    gate = world.gate(world.started())
    assert gate is not None
    assert gate.cause is Cause.MESSAGE
    return gate


def test_a_key_that_moves_to_another_partition_is_a_bad_message(world):
    world.publish_records("a=1 b=2")
    world.publish_records("b=3", "c=4 a=5")
    world.deliver(world.started())
    gate = gate_of(world)
    assert gate.first_id == 4
    assert "its key was in partition 0 of accounts before" in gate.reason
    assert world.collection.ids == [0, 1, 2, 3]


@pytest.mark.parametrize("order", [list, reversed], ids=["in order", "in reverse"])
def test_a_key_in_two_partitions_of_one_binding_is_bad_in_the_later_one(world, order):
    world.publish_records("a=1 b=2", "c=3 a=4")
    world.deliver(world.started(), write_parts=in_turn(order))
    assert gate_of(world).first_id == 3
    assert world.position(world.started()) == 2


def test_parts_that_do_not_see_each_other_are_written_again(world):
    world.publish_records("a=1 b=2", "c=3 a=4")
    world.deliver(world.started(), write_parts=all_at_once(world))
    assert gate_of(world).first_id == 3


def test_one_at_a_time_the_same_message_is_bad(world):
    world.publish_records("a=1 b=2", "c=3 a=4 d=5")
    world.deliver(world.started())
    world.resume(world.started())
    assert gate_of(world).first_id == 3


def test_when_the_one_in_the_other_partition_is_acknowledged_the_rest_goes_on(world):
    binding = world.publish_records("a=1 b=2", "c=3 a=4 d=5")
    world.deliver(world.started())
    world.resume(world.started())
    world.acknowledge(world.started(), 3, untried=False)
    world.resume(world.started())
    world.deliver(world.started())
    assert world.position(world.started()) == binding.end
    assert world.collection.ids == [0, 1, 2, 4]
    assert world.collection.state() == {"a": 1, "b": 2, "c": 3, "d": 5}


def test_partitions_of_later_bindings_do_not_count_when_an_earlier_one_is_delivered_again(world):
    first = world.publish_records("a=1")
    world.publish_records("b=2")
    world.deliver(world.started())
    done = world.deliver_again(world.started(), first.t, first.t)
    assert done.failure is None
    assert world.collection.ids == [0, 1]


def test_a_deleted_key_still_belongs_to_its_partition(world):
    world.publish_records("a=1 a")
    world.publish_records("", "a=2")
    world.deliver(world.started())
    assert gate_of(world).first_id == 2


def test_a_key_is_looked_up_once_a_part(world):
    world.publish_records("a=1 a=2 b=3 a=4")
    writer = world.started()
    world.deliver(writer)
    assert [len(keys) for keys in writer.memory.looked_up] == [2]
