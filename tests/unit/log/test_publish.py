"""publish: a captured binding becomes part of the log, once, in order, or not at all."""

import pytest
from tests.support.log_samples import (
    FIRST,
    FIRST_VALUES,
    PUBLISHED_AT,
    SECOND,
    SECOND_VALUES,
    SEGMENT_BYTES,
    add_binding,
    capture,
    given_messages,
    publish_all,
    write_file,
)

from tidemark.log.model.manifest import NO_FILES, Manifest
from tidemark.log.publish import NotCaptured, OutOfTurn, publish, read_log, require_audit
from tidemark.log.state.control import LogHead
from tidemark.log.state.lease import read_lease, take_log

pytestmark = pytest.mark.unit


def test_a_log_without_a_publication_is_empty(control, folder):
    assert read_log(control, folder) == Manifest("orders")


def test_a_published_binding_is_in_the_log(control, folder):
    captured = capture(folder, FIRST, FIRST_VALUES)
    publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    log = read_log(control, folder)
    assert (log.t, log.end, tuple(log.files)) == (1_000, 4, captured.files)


def test_a_captured_binding_is_not_in_the_log_before_it_is_published(control, folder):
    capture(folder, FIRST, FIRST_VALUES)
    assert read_log(control, folder) == Manifest("orders")


def test_the_next_binding_is_added_to_the_log(control, folder):
    publish_all(control, folder, {FIRST: FIRST_VALUES, SECOND: SECOND_VALUES})
    log = read_log(control, folder)
    assert (log.t, log.end, log.count) == (2_000, 6, 7)
    assert [file.first_id for file in log.files] == [0, 3, 5]


def test_the_log_s_head_says_what_the_log_amounts_to(control, folder):
    publish_all(control, folder, {FIRST: FIRST_VALUES, SECOND: SECOND_VALUES})
    log, head = read_log(control, folder), control.log_head()
    assert (head.t, head.end, head.segments, head.bytes, head.count) == (2_000, 6, 1, log.bytes, 7)


def test_segments_are_closed_at_their_size(control, folder):
    for binding, values in ((FIRST, FIRST_VALUES), (SECOND, SECOND_VALUES)):
        capture(folder, binding, values)
        publish(control, folder, binding, 1, PUBLISHED_AT)
    assert control.log_head().segments == 2


def test_the_answer_is_the_head_that_the_control_plane_has(control, folder):
    capture(folder, FIRST, FIRST_VALUES)
    assert publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT) == control.log_head()


def test_a_binding_without_messages_moves_the_end(control, folder):
    capture(folder, FIRST, {})
    publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    head = control.log_head()
    assert (head.end, head.count, head.segments) == (4, 0, 0)


# Twice, too early, out of order


def test_publishing_again_changes_nothing(control, folder):
    publish_all(control, folder, {FIRST: FIRST_VALUES})
    before = control.log_head()
    assert publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT) == before
    assert control.log_head() == before


def test_publishing_an_older_binding_again_changes_nothing(control, folder):
    publish_all(control, folder, {FIRST: FIRST_VALUES, SECOND: SECOND_VALUES})
    before = control.log_head()
    publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    assert control.log_head() == before


def test_publishing_before_the_capture_is_refused(control, folder):
    with pytest.raises(NotCaptured) as refusal:
        publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    assert (refusal.value.pipeline, refusal.value.t) == ("orders", 1_000)
    assert str(refusal.value).startswith(
        "orders: the binding at 1000 has no finished capture. Nothing was published."
    )


def test_publishing_before_the_capture_changes_nothing(control, folder):
    with pytest.raises(NotCaptured):
        publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    assert control.log_head() == LogHead()


def test_files_without_the_capture_s_record_are_not_published(control, folder):
    write_file(folder, FIRST, FIRST.slices[0], [given_messages(FIRST, "orders", 0, {0: b"a"})])
    with pytest.raises(NotCaptured):
        publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)


def test_a_binding_is_not_published_past_an_unpublished_one(control, folder):
    """The older one would be passed by for ever: its t is below the log's, its messages in no manifest."""
    for binding, values in ((FIRST, FIRST_VALUES), (SECOND, SECOND_VALUES)):
        add_binding(control, binding)
        capture(folder, binding, values)
    with pytest.raises(OutOfTurn) as refusal:
        publish(control, folder, SECOND, SEGMENT_BYTES, PUBLISHED_AT)
    error = refusal.value
    assert (error.pipeline, error.t, error.base, error.end) == ("orders", 2_000, 5, -1)
    assert control.log_head() == LogHead()


def test_a_binding_that_had_to_wait_is_published_after_the_older_one(control, folder):
    for binding, values in ((FIRST, FIRST_VALUES), (SECOND, SECOND_VALUES)):
        add_binding(control, binding)
        capture(folder, binding, values)
    publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    assert publish(control, folder, SECOND, SEGMENT_BYTES, PUBLISHED_AT).end == 6


# Races


def test_two_publishers_of_one_binding_both_end_well(control, folder, consensus):
    capture(folder, FIRST, FIRST_VALUES)
    consensus.before_next_commit = lambda: publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    head = publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    assert head == control.log_head()
    assert (head.version, head.end) == (1, 4)


def test_a_publisher_that_was_overtaken_by_a_compaction_publishes_on_top_of_it(control, folder, consensus):
    publish_all(control, folder, {FIRST: FIRST_VALUES})
    capture(folder, SECOND, SECOND_VALUES)

    def compact():
        before = control.log_head()
        manifest = read_log(control, folder).with_segments([], NO_FILES).compacted(4, "journal")
        control.replace_log(before.version, LogHead.naming(manifest, *folder.write_manifest(manifest)))

    consensus.before_next_commit = compact
    head = publish(control, folder, SECOND, SEGMENT_BYTES, PUBLISHED_AT)
    log = read_log(control, folder)
    assert (head.end, head.compacted_below, log.compacted_below, log.policies) == (6, 4, 4, ("journal",))
    assert [file.t for file in log.files] == [SECOND.t]


def test_a_publisher_whose_log_object_was_changed_beside_the_head_goes_on(control, folder, consensus):
    publish_all(control, folder, {FIRST: FIRST_VALUES})
    capture(folder, SECOND, SECOND_VALUES)
    consensus.before_next_commit = lambda: take_log(control, "compaction")
    publish(control, folder, SECOND, SEGMENT_BYTES, PUBLISHED_AT)
    assert (control.log_head().end, read_lease(control).lease.holder) == (6, "compaction")


def test_a_publisher_that_is_overtaken_out_of_turn_is_refused(control, folder, consensus):
    capture(folder, FIRST, FIRST_VALUES)
    consensus.before_next_commit = lambda: control.replace_log(0, LogHead(t=500, end=3))
    with pytest.raises(OutOfTurn):
        publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    assert control.log_head().t == 500


def test_a_binding_that_is_published_needs_no_record_of_its_capture_any_more(control, folder, tmp_path):
    publish_all(control, folder, {FIRST: FIRST_VALUES})
    (tmp_path / "captured" / f"{FIRST.t:020d}.json").unlink()
    assert require_audit(control, folder, FIRST, PUBLISHED_AT).passed
