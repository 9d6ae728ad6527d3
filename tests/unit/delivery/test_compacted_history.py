"""G12: below what is compacted nothing is delivered, unless it makes no difference to the target."""

from dataclasses import replace

import pytest
from tests.support.log_samples import compact
from tests.support.memory_writers import Shelf, Stream
from tests.support.pipeline_world import PipelineWorld

from tidemark.delivery.compacted_history import HistoryCompacted
from tidemark.log.model.binding import TopicPartition

pytestmark = pytest.mark.unit


class Rebuilding(Stream):
    """Takes what compaction has left, or says why not."""

    refusal: str | None = None
    asked: dict[TopicPartition, int] | None = None

    def refuses_compacted(self, offsets, is_begun):
        self.asked = dict(offsets)
        return None if is_begun else self.refusal


def given_compacted(house: PipelineWorld, policy: str = "journal", below: int = 4) -> None:
    """Three bindings of two ids each; of the first two, ids 1 and 2 are left."""
    for letters in ("ab", "cd", "ef"):
        house.publish(orders=letters)
    compact(house.control, house.log.folder, below, keep=lambda id_: id_ in (1, 2), policy=policy)


# A new writer


def test_G12_a_new_writer_from_the_beginning_is_refused(house):
    given_compacted(house)
    with pytest.raises(HistoryCompacted, match=r"orders/stream: .*below id 4.*Give it `start: latest`") as no:
        house.deliver(writer := Stream())
    assert (no.value.first_id, no.value.compacted_below, no.value.needs_person) == (0, 4, True)
    assert (house.positions.load("stream"), writer.calls) == (None, [])


def test_a_new_writer_that_begins_at_the_end_is_welcome(house):
    given_compacted(house)
    house.deliver(writer := Stream(), start=house.log.end)
    house.publish(orders="g")
    house.deliver(writer)
    assert writer.ids == [6]


def test_a_writer_to_which_it_makes_no_difference_gets_what_is_left(house):
    given_compacted(house)
    house.deliver(writer := Rebuilding(), limit=1)
    assert (writer.asked, writer.ids) == ({}, [1])
    house.deliver(writer)
    assert (writer.ids, house.position(writer)) == ([1, 2, 4, 5], 5)


def test_it_is_asked_about_the_offsets_that_compaction_may_have_touched(house):
    given_compacted(house)
    writer = Rebuilding()
    writer.refusal = "its tables are full"
    with pytest.raises(HistoryCompacted, match="its tables are full"):
        house.deliver(writer)
    assert writer.asked == {("orders", 0): 3}


@pytest.mark.parametrize("policy", ["latest", "progress"])
def test_another_policy_leaves_nothing_to_begin_with(house, policy):
    given_compacted(house, policy)
    with pytest.raises(HistoryCompacted, match=rf"another policy than `journal` \({policy}\)"):
        house.deliver(Rebuilding())


def test_a_policy_of_the_past_counts_too(house):
    given_compacted(house, "latest")
    compact(house.control, house.log.folder, 4, keep=lambda id_: id_ == 1, policy="journal")
    with pytest.raises(HistoryCompacted, match=r"\(journal, latest\)"):
        house.deliver(Rebuilding())


# Who is there already


def test_files_that_span_bindings_are_delivered_binding_by_binding(house):
    for letters in ("ab", "cd", "ef"):
        house.publish(orders=letters, refunds=letters)
    compact(house.control, house.log.folder, below=0, keep=lambda id_: True)
    compact(house.control, house.log.folder, below=8)
    # Nothing is gone, so it may be said that nothing is compacted.
    head = house.control.log_head()
    manifest = house.log.manifest
    whole = replace(manifest, compacted_below=0, policies=())
    path, digest = house.log.folder.write_manifest(whole)
    house.control.replace_log(head.version, type(head).naming(whole, path, digest))
    house.deliver(writer := Shelf())
    assert writer.bindings == {0: [0, 1, 2, 3], 4: [4, 5, 6, 7], 8: [8, 9, 10, 11]}
    assert house.positions.namespaces("shelf") == {"orders": 9, "refunds": 11}


def test_a_writer_beyond_what_is_compacted_notices_nothing(house):
    for letters in ("ab", "cd", "ef"):
        house.publish(orders=letters)
    house.deliver(writer := Stream(), limit=4)
    compact(house.control, house.log.folder, 4, keep=lambda id_: False, policy="progress")
    house.deliver(writer)
    assert (writer.ids, house.position(writer)) == ([0, 1, 2, 3, 4, 5], 5)


def test_a_writer_that_was_somehow_left_behind_is_refused_not_given_holes(house):
    for letters in ("ab", "cd", "ef"):
        house.publish(orders=letters)
    house.deliver(writer := Stream(), limit=1)
    compact(house.control, house.log.folder, 4, keep=lambda id_: False, policy="progress")
    with pytest.raises(HistoryCompacted, match="from id 2 on"):
        house.deliver(writer)
    assert (writer.ids, house.position(writer)) == ([0, 1], 1)


def test_a_resume_of_a_binding_that_is_not_whole_any_more_is_refused(house):
    house.publish(orders="ab")
    house.publish(orders="cdef")
    house.publish(orders="g")
    house.deliver(writer := Shelf(bad={4}))
    compact(house.control, house.log.folder, 6, keep=lambda id_: id_ == 4, policy="latest")
    writer.bad = set()
    with pytest.raises(HistoryCompacted, match="from id 2 on"):
        house.resume(writer)
    assert (writer.bindings, house.position(writer)) == ({0: [0, 1]}, 3)


# Backfill and rewind


def test_finished_bindings_are_not_delivered_again_from_what_is_left(house):
    for letters in ("ab", "cd", "ef"):
        house.publish(orders=letters)
    house.deliver(writer := Stream())
    compact(house.control, house.log.folder, 4, keep=lambda id_: False)
    with pytest.raises(HistoryCompacted, match=r"from id 2 on.*Deliver again only bindings that begin"):
        house.deliver_again(writer, from_t=2_000)
    writer.calls = []
    house.deliver_again(writer, from_t=3_000)
    assert writer.calls == [[4, 5]]


def test_a_target_that_has_everything_may_be_delivered_to_again(house):
    for letters in ("ab", "cd", "ef"):
        house.publish(orders=letters)
    house.deliver(writer := Rebuilding())
    compact(house.control, house.log.folder, 4, keep=lambda id_: id_ == 3)
    writer.calls = []
    house.deliver_again(writer)
    assert (writer.calls, writer.asked) == ([[], [3], [4, 5]], {("orders", 0): 3})


def test_a_rewind_of_such_a_target_goes_below(house):
    for letters in ("ab", "cd", "ef"):
        house.publish(orders=letters)
    house.deliver(writer := Rebuilding())
    compact(house.control, house.log.folder, 4, keep=lambda id_: id_ == 3)
    house.operator.rewind("stream", -1, writer).execute(house.deed("rewind"))
    house.deliver(writer)
    assert house.position(writer) == 5


def test_a_retired_writer_does_not_go_below(house):
    for letters in ("ab", "cd", "ef"):
        house.publish(orders=letters)
    house.deliver(Rebuilding())
    compact(house.control, house.log.folder, 4, keep=lambda id_: True)
    with pytest.raises(HistoryCompacted, match="does not have the writer any more"):
        house.operator.rewind("stream", 1)
    house.operator.rewind("stream", 3)
