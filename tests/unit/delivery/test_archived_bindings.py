"""Delivery of bindings that have left the control plane, and how far all consumers of a log are."""

from dataclasses import replace

import pytest
from tests.support.memory_writers import Shelf, Stream
from tests.support.pipeline_world import PipelineWorld, given_stopped

from tidemark.delivery.binding_delivery import BindingBeyondPosition
from tidemark.delivery.state.registration import passed_by_all
from tidemark.log.bindings.archive import Archiving, archive_bindings, remove_archived
from tidemark.log.bindings.door import Bindings
from tidemark.log.errors import BindingsMissing
from tidemark.log.model.binding_list import ListSizes
from tidemark.log.publish import read_log
from tidemark.log.state.control import LogHead
from tidemark.log.state.holds import Hold, add_hold

pytestmark = pytest.mark.unit


def archive(house: PipelineWorld) -> int:
    """Archive every binding but the newest; returns how many are in lists."""
    log, head = house.log, house.control.log_head()
    manifest = read_log(house.control, log.folder)
    everything = Archiving(0, lambda: manifest.end, sizes=ListSizes(bindings=2, span=1, fanout=2))
    lists = archive_bindings(house.control, log.folder.root, manifest.bindings, manifest.t, everything)
    listed = replace(manifest, bindings=lists)
    named = LogHead.naming(listed, *log.folder.write_manifest(listed), log.folder.root)
    house.control.replace_log(head.version, named)
    remove_archived(house.control, log.folder.root, lists)
    return lists.count


@pytest.fixture
def archived(house) -> PipelineWorld:
    """Five bindings with two messages each, four of them in lists."""
    for text in ("ab", "cd", "ef", "gh", "ij"):
        house.publish(orders=text)
    house.deliver(stream := Stream())
    assert house.position(stream) == 9
    assert archive(house) == 4
    return house


def test_a_new_writer_gets_every_message(archived):
    shelf = Shelf()
    assert archived.deliver(shelf).position == 9


def test_a_writer_that_was_moved_back_goes_on_from_there(archived):
    archived.rewind("stream", 2)
    stream = Stream()
    assert archived.deliver(stream).position == 9


def test_bindings_are_delivered_again_by_their_times(archived):
    times = [one.t for one in Bindings(archived.control).every()]
    done = archived.deliver_again(Stream(), times[0], times[2])
    assert (done.failure, done.position) == (None, 9)


def test_what_comes_after_archived_bindings_is_delivered(archived):
    archived.publish(orders="kl")
    assert archived.deliver(Stream()).position == 11


def test_nothing_is_delivered_beyond_a_gap(archived):
    head, manifest = archived.control.log_head(), archived.log.manifest
    without = replace(manifest, bindings=type(manifest.bindings)())
    named = LogHead.naming(without, *archived.log.folder.write_manifest(without), archived.log.folder.root)
    archived.control.replace_log(head.version, named)
    with pytest.raises(BindingsMissing) as refusal:
        archived.deliver(Shelf())
    assert (refusal.value.first_id, refusal.value.last_id) == (0, 7)
    assert archived.position(Shelf()) == -1


def test_a_binding_beyond_the_next_id_is_refused(house, monkeypatch):
    house.publish(orders="ab")
    second = house.publish(orders="cd")
    monkeypatch.setattr(Bindings, "after", lambda door, position: iter([second]))
    with pytest.raises(BindingBeyondPosition) as refusal:
        house.deliver(Stream())
    found = refusal.value
    assert (found.pipeline, found.writer, found.base, found.position) == ("orders", "stream", 2, -1)
    assert house.position(Stream()) == -1


def test_a_resume_refuses_a_binding_beyond_the_next_id(house, monkeypatch):
    writer = given_stopped(house, Stream(), "ab", "cd")
    house.close_gate(writer, replace(house.gate(writer), through=3))
    _, second = house.log.bindings.every()
    monkeypatch.setattr(Bindings, "after", lambda door, position: iter([second]))
    with pytest.raises(BindingBeyondPosition):
        house.resume(writer)
    assert (writer.calls, house.position(writer)) == ([], -1)


# How far all consumers are


def test_the_slowest_writer_says_what_every_consumer_has_passed(house):
    house.publish(orders="ab")
    house.publish(orders="cd")
    house.deliver(Stream())
    house.deliver(Shelf(), limit=1)
    assert passed_by_all(house.control, house.positions, ["stream", "shelf"]) == 1
    assert passed_by_all(house.control, house.positions, []) == 1


def test_a_declared_writer_that_never_ran_has_passed_nothing_unless_it_can_never_begin(house):
    house.publish(orders="ab")
    house.deliver(Stream())
    assert passed_by_all(house.control, house.positions, ["stream", "other"]) == -1
    assert passed_by_all(house.control, house.positions, ["stream", "other"], ["other"]) == 1


def test_a_log_without_writers_was_passed_by_none(house):
    house.publish(orders="ab")
    assert passed_by_all(house.control, house.positions, []) == -1


def test_a_process_that_holds_a_part_of_the_log_has_not_passed_it(house):
    house.publish(orders="ab")
    house.deliver(Stream())
    add_hold(house.control, Hold("purge", 0))
    assert passed_by_all(house.control, house.positions, ["stream"]) == 0
