"""Digests of a binding: the same however it is cut, ordered, interrupted or computed again."""

from itertools import pairwise

import pytest
from tests.support.memory_collection import CollectionWorld

from tidemark.delivery.binding_steps import write_parts_at_once, write_parts_here
from tidemark.delivery.writer import Part
from tidemark.outputs.model.digest import ShardDigest, TimeDigests
from tidemark.writers.collection import writer as collection

pytestmark = pytest.mark.unit

ROWS = 40


def given_world(root):
    world = CollectionWorld(root)
    binding = world.publish_records(
        " ".join(f"a{i % 9}={i}" for i in range(ROWS)), " ".join(f"b{i % 5}={i}" for i in range(ROWS))
    )
    return world, binding


def backwards(writer, parts, log, acknowledged, ticket):
    """The parts of a binding in reverse, with their files shuffled."""
    turned = [Part(one.binding, one.files[::-1], one.number) for one in parts][::-1]
    return write_parts_here(writer, turned, log, acknowledged, ticket)[::-1]


def as_many(count):
    """As many parts of equal ids as wanted, whatever the writer cuts."""

    def write_parts(writer, parts, log, acknowledged, ticket):
        binding, files = parts[0].binding, tuple(file for part in parts for file in part.files)
        files = tuple(dict.fromkeys(files))
        bounds = [binding.base + binding.width * i // count for i in range(count + 1)]
        cut = [Part(binding, files, first_id=first, last_id=last - 1) for first, last in pairwise(bounds)]
        done = write_parts_here(writer, cut, log, acknowledged, ticket)
        whole = done[0]
        for one in done[1:]:
            assert not one.is_trouble
            whole = type(whole)(whole.written + one.written)
        return [whole, *(type(whole)() for _ in parts[1:])]

    return write_parts


@pytest.mark.parametrize(
    ("write_parts", "a_part"),
    [
        (write_parts_here, 250_000),
        (write_parts_at_once, 250_000),
        (write_parts_here, 7),
        (backwards, 7),
        (as_many(1), 250_000),
        (as_many(7), 250_000),
        (as_many(32), 250_000),
    ],
    ids=["by partition", "at once", "shares", "shares in reverse", "1 part", "7 parts", "32 parts"],
)
def test_31_every_way_to_cut_a_binding_gives_the_same_digests(tmp_path, monkeypatch, write_parts, a_part):
    monkeypatch.setattr(collection, "MESSAGES_A_PART", a_part)
    world, binding = given_world(tmp_path)
    world.deliver(world.started(), write_parts=write_parts)
    assert world.digests[binding.t] == world.collection.digests(binding.t)
    assert str(world.digests[binding.t].total) == "80:8b4f972eff75796aad038b1f665482cd"


@pytest.mark.parametrize("singly", [0, 10])
def test_31_one_message_at_a_time_gives_the_same_digests(tmp_path, singly):
    world, binding = given_world(tmp_path)

    def fails(done):
        if done == 30:
            raise ConnectionError("no answer")

    world.deliver(world.started(fails))
    assert world.digests == {}
    world.resume(world.started(), singly=singly)
    assert world.position(world.started()) == binding.end
    assert world.digests[binding.t] == world.collection.digests(binding.t)


def test_6_a_binding_without_messages_has_digests_of_nothing(tmp_path):
    world = CollectionWorld(tmp_path)
    binding = world.publish_records("- -")
    world.deliver(world.started())
    assert world.digests == {binding.t: TimeDigests(binding.t, (ShardDigest(),) * 4)}


def test_digests_are_committed_with_the_position_and_not_before(tmp_path):
    world, binding = given_world(tmp_path)

    def fails(done):
        if done == 79:
            raise ConnectionError("no answer")

    world.deliver(world.started(fails))
    assert (world.position(world.started()), world.digests) == (-1, {})
    world.operator.open("accounts").execute(world.deed("open"))
    world.deliver(world.started())
    assert (world.position(world.started()), list(world.digests)) == (binding.end, [binding.t])
