"""What each policy keeps: the cases of the specification, and the guarantees about retention."""

import pytest
from tests.support.compaction_samples import (
    EXAMPLE_C,
    EXAMPLE_C_ACTIVE,
    JOURNAL,
    LATEST,
    PROGRESS,
    Sent,
    added,
    deleted,
    given_log,
    marked,
    of_keys,
    of_namespaces,
    plan_compaction,
    purged,
    sent,
    survivors,
)

from tidemark.journal.action import Purge, append
from tidemark.journal.events import EncodedEvent, Events

pytestmark = pytest.mark.unit

BOUNDLESS = (
    ("journal.action", b'{"append":{"range":{"from":1,"to":9223372036854775807},"payloadType":"json"}}'),
)


def example_c():
    return given_log(of_namespaces(EXAMPLE_C), of_namespaces(EXAMPLE_C_ACTIVE))


def journal(*messages, **further):
    """The ids that stay of a journal whose messages are all in an inactive segment."""
    active = [added(1, key="elsewhere")]
    return survivors(given_log(list(messages), active), JOURNAL, {"w": 10**6}, **further)


# progress


def test_T39_example_C_keeps_the_last_of_every_namespace():
    assert survivors(example_c(), PROGRESS) == [14, 15, 16]


def test_T39_the_active_segment_is_untouched_and_ids_stay():
    plan, _, _ = plan_compaction(example_c(), PROGRESS)
    assert (plan.active_from, len(plan.active_files)) == (17, 3)
    assert not {file.path for file in plan.inputs} & set(plan.active_files)


def test_I5_the_smallest_value_of_the_offset_log_is_not_the_watermark():
    assert survivors(example_c(), PROGRESS, {"c0": 1}) == list(range(17))


@pytest.mark.parametrize(
    ("position", "stays"),
    [
        (10, [7, 8, 9, *range(10, 17)]),
        (16, [13, 14, 15, 16]),
        (17, [14, 15, 16]),
    ],
)
def test_T45_only_below_the_watermark(position, stays):
    assert survivors(example_c(), PROGRESS, {"c0": position}) == stays


def test_T46_a_writer_without_a_position_blocks_everything():
    plan, _, _ = plan_compaction(example_c(), PROGRESS, {"c0": 27, "c1": -1})
    assert plan.is_empty
    assert (plan.held_back_by, plan.watermark.withheld) == ("c1", 17)


def test_T47_the_slowest_writer_bounds_compaction():
    log = example_c()
    plan, _, _ = plan_compaction(log, PROGRESS, {"c0": 27, "c1": 9})
    assert survivors(log, PROGRESS, {"c0": 27, "c1": 9}) == [5, 7, 8, *range(9, 17)]
    assert plan.held_back_by == "c1"


def test_T49_one_survivor_per_key_over_all_inactive_segments():
    log = given_log(of_namespaces("A B A"), of_namespaces("A B C"), of_namespaces("A"))
    assert survivors(log, PROGRESS) == [3, 4, 5]


def test_T50_pins_stay():
    assert survivors(example_c(), PROGRESS, pins=(5, 13)) == [5, 13, 14, 15, 16]


def test_G2_the_last_message_of_the_log_stays_even_an_old_tombstone():
    log = given_log(of_keys("a b -b"), of_keys("z"))
    assert survivors(log, LATEST, tombstones_before=10**9) == [0, 2]


# latest


def test_latest_keeps_the_last_of_every_key():
    log = given_log(of_keys("a b a c b a"), of_keys("z"))
    assert survivors(log, LATEST) == [3, 4, 5]


def test_latest_keeps_messages_without_a_key():
    log = given_log([Sent(None), Sent(b"a"), Sent(None), Sent(b"a")], of_keys("z"))
    assert survivors(log, LATEST) == [0, 2, 3]


def test_latest_takes_the_same_key_of_another_namespace_for_another_key():
    log = given_log([Sent(b"a", topic="x"), Sent(b"a", topic="y")], of_keys("z"))
    assert survivors(log, LATEST) == [0, 1]


@pytest.mark.parametrize(
    ("before", "stays"), [(0, [1, 2]), (1_001, [1, 2]), (1_002, [2])], ids=["young", "just", "old"]
)
def test_latest_keeps_a_tombstone_for_its_time(before, stays):
    log = given_log(of_keys("a -a b"), of_keys("z"))
    assert survivors(log, LATEST, tombstones_before=before) == stays


def test_latest_keeps_a_tombstone_as_long_as_something_older_of_its_key_is_pinned():
    log = given_log(of_keys("a -a b"), of_keys("z"))
    assert survivors(log, LATEST, tombstones_before=10**9, pins=(0,)) == [0, 1, 2]


def test_latest_lets_a_value_after_a_tombstone_count():
    log = given_log(of_keys("a -a a b"), of_keys("z"))
    assert survivors(log, LATEST, tombstones_before=10**9) == [2, 3]


# journal


def test_a_journal_keeps_the_last_append_before_the_furthest_delete_and_what_reaches_beyond():
    assert journal(added(1), added(2), added(3, 4), added(5), deleted(3), added(6)) == [2, 3, 4, 5]


def test_a_journal_keeps_one_append_before_a_delete_of_everything():
    assert journal(added(1), added(2), added(3), deleted(9), added(4)) == [2, 3, 4]


def test_a_journal_drops_deletes_before_the_furthest_and_keeps_those_after_it():
    assert journal(added(1, 9), deleted(2), deleted(8), deleted(5)) == [0, 2, 3]


def test_of_two_deletes_that_reach_as_far_the_later_one_counts():
    assert journal(added(1), deleted(5), added(2), deleted(5)) == [2, 3]


def test_a_journal_drops_marks_and_non_actions():
    nothing = [
        Sent(None, headers=added(1).headers),
        Sent(b"a", timestamp_type=-1, headers=added(1).headers),
        Sent(b"a"),
        Sent(b"a", headers=(("journal.action", b'{"hello":{}}'),)),
        Sent(b"a", None, headers=added(1).headers),
    ]
    assert journal(marked(), *nothing, added(1)) == [6]


def test_a_purge_goes_with_everything_it_purged():
    assert journal(added(1), purged(), added(1), purged()) == []


def test_after_a_purge_the_new_incarnation_stays():
    assert journal(added(1), added(2), purged(), added(1)) == [3]


def test_a_purge_stays_as_long_as_something_older_is_pinned():
    assert journal(added(1), added(2), purged(), added(1), pins=(0,)) == [0, 2, 3]


def test_an_incarnation_with_a_pinned_message_stays_as_it_is():
    assert journal(added(1), added(2), added(3), deleted(3), pins=(0,)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "messages",
    [
        (added(1), added(3), deleted(3)),
        (added(1), added(1), deleted(1)),
        (deleted(1), added(1), added(2), deleted(2)),
        (added(1), Sent(b"a", b"x", headers=(("journal.action", b"{"),)), added(2), deleted(2)),
        (added(1), Sent(b"a", b"broken", headers=added(2).headers), deleted(2)),
        (added(1), Sent(b"a", added(3).value, headers=added(2).headers), deleted(2)),
        (added(1), Sent(b"a", added(2, 3).value, headers=added(2).headers), deleted(2)),
        (added(1), sent(append("a", 1, Events((EncodedEvent(2),))), partition=1), deleted(2)),
        (Sent(b"a", added(1).value, headers=BOUNDLESS), deleted(2)),
    ],
    ids=[
        *("a gap", "a repetition", "a delete first", "no header", "no payload"),
        *("other events", "more events", "two partitions", "a range without end"),
    ],
)
def test_an_irregular_incarnation_stays_as_it_is(messages):
    assert journal(*messages) == list(range(len(messages)))


def test_an_irregular_incarnation_is_purged_all_the_same():
    assert journal(added(1), added(3), added(3), deleted(9), purged(), added(1)) == [5]


def test_a_purge_that_the_fold_would_refuse_purges_nothing():
    """It comes from another partition than the entity: delivered, it is an error, and nothing is purged."""
    other = sent(Purge("a", 1), partition=1)
    assert journal(added(1), added(2), other) == [0, 1, 2]


def test_a_purge_at_an_older_offset_purges_nothing():
    """Of a topic that was made anew: the fold takes it for one it has had."""
    assert journal(sent(append("a", 1, Events((EncodedEvent(1),))), 0, 100), sent(Purge("a", 1), 0, 5)) == [
        0,
        1,
    ]


def test_what_a_person_let_pass_unwritten_keeps_its_incarnation_as_it_is():
    messages = added(1), added(2), added(3), deleted(3)
    assert journal(*messages) == [2, 3]
    assert journal(*messages, acknowledged=(2,)) == [0, 1, 2, 3]


def test_a_purge_that_a_person_let_pass_purges_nothing():
    assert journal(added(1), purged(), acknowledged=(1,)) == [0, 1]


def test_keys_that_are_not_utf_8_are_one_entity_when_they_read_the_same():
    first = Sent(b"a\xff", added(1).value, headers=added(1).headers)
    second = Sent(b"a\xfe", None, headers=purged().headers)
    assert journal(first, second, added(1, key="b")) == [2]


def test_I10_the_message_at_the_watermark_does_not_count():
    log = given_log([added(1), added(2), purged(), added(1)], [added(9, key="z")])
    assert survivors(log, JOURNAL, {"w": 2}) == [0, 1, 2, 3]
    assert survivors(log, JOURNAL, {"w": 3}) == [3]


def test_the_oldest_purged_entity_is_named():
    messages = [added(1, key="b"), added(1), purged(), purged("b")]
    plan, _, _ = plan_compaction(given_log(messages, [added(1, key="z")]), JOURNAL, {"w": 10**6})
    oldest = plan.census.oldest_purged
    assert (oldest.key, oldest.id, oldest.t, oldest.goes) == ("a", 2, 1_002, True)
