"""The fold's own promises: what it writes, with which time, what it counts and what it refuses."""

import pickle
from datetime import date, timedelta, timezone
from uuid import UUID

import pytest
from tests.support.case_files import event, micros

from tidemark.journal.action import Action, Append, Delete, Mark, Purge, append
from tidemark.journal.codec.expire_after import ExpireAfter
from tidemark.journal.effect import Duplicate, Effect, HeadTombstone, Message, Row, Tombstone
from tidemark.journal.errors import (
    JournalError,
    OutOfOrder,
    Repartitioned,
    Unbounded,
    Undecodable,
    Unwritable,
)
from tidemark.journal.events import EncodedEvent, Events, PayloadMetadata
from tidemark.journal.fold import MOST_SEGMENTS, Fold, fold
from tidemark.journal.head import Head, record_id

pytestmark = pytest.mark.unit

T = micros("2019-12-12T22:30:00Z")
HEAD = Head(3355, 0, 5, 2, 5, None, 1, 1, None, None, record_id("topic", 0, "id", 0), "first")


def at(offset: int, action: Action, partition: int = 0) -> Message:
    return Message(1000 + offset, partition, offset, T + offset, T, action)


def appended(*numbers: int, expire_after: ExpireAfter | None = None) -> Append:
    return append("id", 7, Events(tuple(map(event, numbers)), PayloadMetadata(expire_after)), origin="host")


def folded(head: Head | None, *messages: Message, size: int = 2) -> Effect:
    return fold("topic", "id", head, messages, segment_size=size)


def deleted(effect: Effect) -> set[tuple[int, int | None]]:
    return {(segment, up_to) for segment, up_to, _ in effect.tombstones}


BAD = Append("id", 7, 1, 1, "json", b"{")


def test_a_first_append_makes_a_head_and_rows() -> None:
    action = append(
        "id",
        7,
        Events(
            (EncodedEvent(5, ("a",), "json", "{}"), EncodedEvent(6, (), "binary", b"b"), EncodedEvent(7)),
            PayloadMetadata(ExpireAfter(1, "hour"), "1"),
        ),
        origin="host",
        version="1",
        metadata="2",
        headers={"h": "v"},
    )
    zone = timezone(timedelta(hours=3))
    effect = fold("topic", "id", None, [at(4, action)], segment_size=3, zone=zone)
    incarnation = record_id("topic", 0, "id", 4)
    assert effect.head == Head(
        segment=3355,
        partition=0,
        offset=4,
        segment_size=3,
        seq_nr=7,
        delete_to=4,
        created=T // 1000,
        updated=T // 1000,
        expire_after=3_600_000_000_000,
        expire_on=date(2019, 12, 13),
        record_id=incarnation,
        origin="host",
    )
    assert effect.head.created_date == date(2019, 12, 12)
    column = '{"header":{"data":2},"payload":{"expireAfter":"1 hour","data":1}}'
    shared = (0, 4, 7, "host", "1", incarnation)
    assert effect.rows == (
        Row("id", "topic", 1, 5, *shared, ("a",), column, "json", "{}", None, {"h": "v"}, T + 4),
        Row("id", "topic", 1, 6, *shared, (), column, "binary", None, b"b", {"h": "v"}, T + 4),
        Row("id", "topic", 2, 7, *shared, (), column, None, None, None, {"h": "v"}, T + 4),
    )
    assert (effect.write_time, effect.tombstones, effect.head_tombstone) == (T + 4, (), None)


def test_an_append_keeps_what_the_head_began_with() -> None:
    effect = folded(HEAD, at(6, appended(6)), at(7, appended(7, expire_after=ExpireAfter(1, "day"))))
    assert effect.head == HEAD._replace(
        offset=7,
        seq_nr=7,
        updated=T // 1000,
        expire_after=86_400_000_000_000,
        expire_on=date(2019, 12, 13),
    )
    assert [row.write_time for row in effect.rows] == [T + 6, T + 7]
    assert effect.write_time == T + 7


def test_nothing_new_means_nothing_to_write() -> None:
    effect = folded(HEAD, at(4, appended(4)), at(5, Delete("id", 7, 3)), at(9, Mark("id", 7, "m")))
    assert effect == Effect("topic", "id", (), (), None, HEAD, None, 0, 2, 0, (), 0, ())


def test_each_tombstone_has_the_time_of_its_own_delete() -> None:
    effect = folded(HEAD, at(6, Delete("id", 7, 3)), at(7, appended(6)), at(8, Delete("id", 7, 5)))
    assert set(effect.tombstones) == {
        Tombstone(0, None, T + 6),
        Tombstone(1, None, T + 8),
        Tombstone(2, 5, T + 8),
    }
    assert [row.seq_nr for row in effect.rows] == [6]


def test_rows_that_a_delete_of_the_same_run_covers_are_not_written_but_deleted() -> None:
    """An earlier attempt at the same run may have written some of them."""
    effect = folded(None, at(0, appended(1, 2, 3)), at(1, appended(4, 5)), at(2, Delete("id", 7, 3)))
    assert [row.seq_nr for row in effect.rows] == [4, 5]
    assert effect.tombstones == (Tombstone(0, None, T + 2), Tombstone(1, 3, T + 2))


def test_a_whole_segment_makes_an_earlier_part_of_it_superfluous() -> None:
    effect = folded(HEAD, at(6, Delete("id", 7, 3)), at(7, Delete("id", 7, 5)))
    assert set(effect.tombstones) == {
        Tombstone(0, None, T + 6),
        Tombstone(1, None, T + 7),
        Tombstone(2, None, T + 7),
    }


def test_rows_appended_after_a_delete_of_everything_are_written() -> None:
    effect = folded(HEAD, at(6, Delete("id", 7, 5)), at(7, appended(6)))
    assert deleted(effect) == {(0, None), (1, None), (2, None)}
    assert [(row.segment, row.seq_nr) for row in effect.rows] == [(2, 6)]


def test_delete_to_never_goes_back() -> None:
    effect = folded(HEAD._replace(delete_to=4), at(6, Delete("id", 7, 2)))
    assert effect.head == HEAD._replace(delete_to=4, offset=6, updated=T // 1000)
    assert effect.tombstones == ()


def test_an_append_at_or_below_delete_to_has_no_rows_and_is_counted() -> None:
    effect = folded(HEAD._replace(delete_to=5), at(6, appended(4)), at(7, appended(5, 6)))
    assert [row.seq_nr for row in effect.rows] == [6]
    assert (effect.hidden, effect.events) == (2, 3)
    assert effect.head is not None
    assert effect.head.seq_nr == 6


def test_sequence_numbers_used_again_are_counted_and_written_all_the_same() -> None:
    effect = folded(HEAD, at(6, appended(5, 6)), at(7, appended(3)))
    assert effect.duplicates == (Duplicate(5, 6), Duplicate(3, 7))
    assert [row.seq_nr for row in effect.rows] == [5, 6, 3]
    assert effect.head is not None
    assert effect.head.seq_nr == 3


def test_a_purge_reaches_one_segment_further_at_either_end_and_both_places_of_the_head() -> None:
    effect = folded(HEAD._replace(seq_nr=9, delete_to=6), at(6, Purge("id", 7)))
    assert deleted(effect) == {(1, None), (2, None), (3, None), (4, None), (5, None)}
    assert {tombstone.write_time for tombstone in effect.tombstones} == {T + 6}
    assert effect.head_tombstone == HeadTombstone((3355, 55), T + 6)
    assert (effect.head, effect.write_time) == (None, T + 6)


def test_a_purge_deletes_around_both_numbers_where_delete_to_is_far_above() -> None:
    """A delete without a head claims to have got so far; written a second time, one with a head does too."""
    head = HEAD._replace(seq_nr=5, delete_to=2**63 - 1)
    top = (2**63 - 2) // 2
    expected = {(segment, None) for segment in (1, 2, 3, top - 1, top, top + 1)}
    assert deleted(folded(head, at(6, Purge("id", 7)))) == expected


def test_a_purge_finds_a_head_wherever_it_was() -> None:
    effect = folded(HEAD._replace(segment=17), at(6, Purge("id", 7)))
    assert effect.head_tombstone == HeadTombstone((3355, 55, 17), T + 6)


def test_a_purge_without_a_head_still_deletes() -> None:
    effect = folded(None, at(6, Purge("id", 7)))
    assert deleted(effect) == {(0, None), (1, None)}
    assert effect.head_tombstone == HeadTombstone((3355, 55), T + 6)


def test_a_purge_covers_every_segment_that_the_run_has_touched() -> None:
    effect = folded(
        HEAD,
        at(6, appended(30)),
        at(7, appended(6)),
        at(8, Delete("id", 7, 1)),
        at(9, Purge("id", 7)),
        at(10, Purge("id", 7)),
    )
    assert deleted(effect) == {(segment, None) for segment in (0, 1, 2, 3, 14)}
    assert {tombstone.write_time for tombstone in effect.tombstones} == {T + 10}
    assert effect.rows == ()


def test_an_append_after_a_purge_begins_a_new_incarnation_in_todays_segment() -> None:
    old = HEAD._replace(segment=55, segment_size=3)
    effect = folded(old, at(6, Purge("id", 7)), at(7, appended(1)))
    assert effect.head is not None
    assert effect.head.record_id == record_id("topic", 0, "id", 7) != HEAD.record_id
    assert (effect.head.segment, effect.head.segment_size, effect.head.origin) == (3355, 2, "host")
    assert effect.head_tombstone == HeadTombstone((3355, 55), T + 6)
    assert [(row.segment, row.seq_nr, row.write_time) for row in effect.rows] == [(0, 1, T + 7)]


def test_an_unfinished_purge_of_the_original_is_finished() -> None:
    assert folded(HEAD, at(5, Purge("id", 7))).head is None
    assert folded(HEAD, at(4, Purge("id", 7))).head == HEAD


def test_a_head_made_by_a_delete_has_no_record_id_and_never_gets_one() -> None:
    effect = folded(None, at(0, Delete("id", 7, 2, "host")), at(1, appended(3)))
    assert effect.head == Head(3355, 0, 1, 2, 3, 2, T // 1000, T // 1000, origin="host")
    assert [row.meta_record_id for row in effect.rows] == [None]


def test_the_record_id_is_the_same_in_every_attempt() -> None:
    assert record_id("topic", 0, "id", 4) == UUID("cb61034b-6fa4-515f-bf27-f3df663f1ab3")


@pytest.mark.parametrize(
    ("sent", "stored"), [('"24 hours"', "24 hours"), ('"1.5 h"', "90 minutes"), ("600", "600 milliseconds")]
)
def test_the_metadata_column_has_the_unit_that_the_producer_chose(sent: str, stored: str) -> None:
    """Item 1."""
    value = f'{{"events":[{{"seqNr":1,"tags":[]}}],"metadata":{{"expireAfter":{sent}}}}}'
    effect = folded(None, at(0, Append("id", 7, 1, 1, "json", value.encode())))
    assert effect.rows[0].metadata == f'{{"header":{{}},"payload":{{"expireAfter":"{stored}"}}}}'


def test_dropped_metadata_is_reported() -> None:
    data = bytes.fromhex("01 00000001 00000011 0000000000000001 00000000 00 00000000") + b"{"
    effect = folded(None, at(3, Append("id", 7, 1, 1, "binary", data)))
    assert effect.metadata_dropped == (3,)


def test_an_undecodable_payload_stops_the_entity_even_if_a_delete_would_cover_it() -> None:
    with pytest.raises(Undecodable) as caught:
        folded(None, at(3, BAD), at(4, Delete("id", 7, 9)))
    error = caught.value
    assert (error.partition, error.offset, error.message_id) == (0, 3, 1003)


def test_what_came_before_an_undecodable_payload_is_not_lost() -> None:
    going = Fold("topic", "id", HEAD, segment_size=2)
    going.apply(at(6, appended(6)))
    before = going.effect()
    with pytest.raises(Undecodable):
        going.apply(at(7, BAD))
    assert going.effect() == before == folded(HEAD, at(6, appended(6)))


def test_an_undecodable_payload_that_the_head_already_has_is_not_looked_at() -> None:
    assert folded(HEAD, at(5, BAD)).skipped == 1


def test_another_partition_is_refused() -> None:
    with pytest.raises(Repartitioned) as caught:
        folded(HEAD, at(9, appended(6), partition=1))
    assert (caught.value.head_partition, caught.value.partition, caught.value.offset) == (0, 1, 9)
    with pytest.raises(Repartitioned):
        folded(None, at(0, appended(1)), at(9, Purge("id", 7), partition=1))


def test_a_mark_in_another_partition_changes_nothing() -> None:
    assert folded(HEAD, at(9, Mark("id", 7, "m"), partition=1)).head == HEAD


def test_messages_out_of_order_are_refused() -> None:
    with pytest.raises(OutOfOrder):
        folded(None, at(3, Purge("id", 7)), at(3, appended(1)))


def test_a_message_of_another_entity_is_refused() -> None:
    with pytest.raises(JournalError, match="'other'"):
        folded(HEAD, at(6, Purge("other", 7)))


@pytest.mark.parametrize("action", [Delete("id", 7, 2**62), Purge("id", 7)])
def test_a_jump_in_sequence_numbers_cannot_ask_for_endless_deletes(action: Action) -> None:
    going = Fold("topic", "id", None, segment_size=2)
    going.apply(at(0, appended(1)))
    going.apply(at(1, appended(2**62)))
    before = going.effect()
    with pytest.raises(Unbounded) as caught:
        going.apply(at(2, action))
    assert caught.value.limit == MOST_SEGMENTS
    assert going.effect() == before


@pytest.mark.parametrize(
    "error",
    [
        Undecodable("reason"),
        Undecodable("reason", 1, 2, 3),
        Unwritable("reason"),
        Repartitioned("topic", "id", 0, 1, 9),
        OutOfOrder("topic", "id", 2, 1),
        Unbounded("topic", "id", 0, 9, 5),
    ],
)
def test_errors_survive_the_way_from_a_worker(error: JournalError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), vars(copy), str(copy)) == (type(error), vars(error), str(error))


def test_drained_rows_are_not_in_the_effect() -> None:
    going = Fold("topic", "id", None, segment_size=2)
    going.apply(at(0, appended(1, 2)))
    drained = going.drain()
    going.apply(at(1, appended(3)))
    assert [row.seq_nr for row in drained or ()] == [1, 2]
    assert [row.seq_nr for row in going.effect().rows] == [3]


def test_rows_behind_a_delete_wait_for_its_tombstone() -> None:
    going = Fold("topic", "id", HEAD, segment_size=2)
    going.apply(at(6, Delete("id", 7, 5)))
    going.apply(at(7, appended(6)))
    assert going.drain() is None
    assert [row.seq_nr for row in going.effect().rows] == [6]


def test_a_purge_deletes_the_segments_of_drained_rows_wherever_they_are() -> None:
    going = Fold("topic", "id", HEAD, segment_size=2)
    going.apply(at(6, appended(41)))
    going.drain()
    going.apply(at(7, appended(6)))
    going.apply(at(8, Purge("id", 7)))
    assert (20, None) in deleted(going.effect())
