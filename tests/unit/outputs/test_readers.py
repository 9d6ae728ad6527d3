"""Capabilities, and what their holders may ask for."""

import pytest
from tests.support.output_samples import (
    OPERATOR,
    TAINT,
    RowsInMemory,
    given_handed_over,
    given_output,
    given_readers,
    given_verified,
    open_at,
    signed,
    updates_of,
)

from tidemark.outputs.errors import StillActive, Tainted
from tidemark.outputs.model.capability import (
    GRACE,
    Capability,
    drop,
    expire,
    move_forward,
    pin,
    raise_since,
    register,
    renew,
)
from tidemark.outputs.model.handover import roll_back
from tidemark.outputs.model.lifecycle import abandon, begin_retire, mark_tainted
from tidemark.outputs.model.reading import changes, check_followable, check_readable
from tidemark.outputs.model.retention import forget_times_of, may_drop_place, retirable
from tidemark.outputs.model.updates import RowUpdate, accumulate, consolidate, difference
from tidemark.outputs.reader_errors import (
    CapabilityMovedBack,
    Forgotten,
    NotYet,
    ReaderExpired,
    ReaderNameTaken,
    StillNeeded,
)

pytestmark = pytest.mark.unit

A = Capability("a", 40, 1_000, "a test")
OVER = 1_000 + GRACE
"""When a deadline of 1,000 and the grace have passed."""


# capabilities


def test_a_reader_registers_from_since_on_and_may_repeat_it():
    readers = register(given_readers(since=40), A)
    assert readers.held_by("a", now=0) == A
    assert register(readers, A) == readers
    with pytest.raises(Forgotten) as refusal:
        register(given_readers(since=41), A)
    assert (refusal.value.t, refusal.value.since) == (40, 41)


def test_an_id_belongs_to_one_reader():
    with pytest.raises(ReaderNameTaken) as refusal:
        register(given_readers(a=50), A)
    assert refusal.value.who == "a test"


def test_a_capability_moves_forward_only():
    readers = move_forward(given_readers(a=40), "a", 45, now=0)
    assert readers.held_by("a", now=0).t == 45
    assert move_forward(readers, "a", 45, now=0) == readers
    with pytest.raises(CapabilityMovedBack) as refusal:
        move_forward(readers, "a", 44, now=0)
    assert (refusal.value.capability, refusal.value.wanted) == (45, 44)


def test_a_renewal_moves_the_deadline_forward_only_and_leaves_pins_alone():
    readers = register(given_readers(), A)
    assert renew(readers, "a", 2_000, now=999).capabilities["a"].deadline == 2_000
    assert renew(readers, "a", 900, now=999) == readers
    pinned = pin(readers, "p", 10, "ann")
    assert renew(pinned, "p", 2_000, now=OVER * 9) == pinned


def test_a_holder_stops_at_its_deadline_and_may_renew_until_the_grace_is_over():
    readers = register(given_readers(), A)
    assert (A.is_usable_at(999), A.is_usable_at(1_000)) == (True, False)
    assert renew(readers, "a", OVER * 2, now=OVER - 1).capabilities["a"].is_usable_at(OVER)
    for late in (
        lambda: renew(readers, "a", OVER * 2, now=OVER),
        lambda: move_forward(readers, "a", 50, now=OVER),
        lambda: readers.held_by("a", now=OVER),
    ):
        with pytest.raises(ReaderExpired) as refusal:
            late()
        assert refusal.value.reader == "a"


def test_an_unknown_reader_is_an_expired_one():
    for step in (lambda r: renew(r, "x", 9, 0), lambda r: move_forward(r, "x", 9, 0)):
        with pytest.raises(ReaderExpired):
            step(given_readers())


def test_expired_readers_are_removed_and_pins_never():
    readers = pin(register(given_readers(), A), "p", 10, "ann")
    assert expire(readers, now=OVER - 1) == readers
    assert set(expire(readers, now=OVER).capabilities) == {"p"}


def test_dropping_a_reader_can_be_repeated():
    readers = drop(given_readers(a=40, b=50), "a")
    assert set(readers.capabilities) == {"b"}
    assert drop(readers, "a") == readers


@pytest.mark.parametrize(("since", "is_allowed"), [(39, True), (40, False), (41, False)])
def test_since_stays_below_every_capability(since, is_allowed):
    readers = given_readers(a=40, b=90)
    if is_allowed:
        assert raise_since(readers, since, now=0).since == since
    else:
        with pytest.raises(StillNeeded) as refusal:
            raise_since(readers, since, now=0)
        assert (refusal.value.reader, refusal.value.capability) == ("a", 40)


def test_since_never_goes_back_and_repeating_it_does_not_ask_the_readers():
    readers = raise_since(given_readers(), 50, now=0)
    late = register(readers, Capability("late", 50, None, "ann"))
    assert raise_since(late, 50, now=0) == late == raise_since(late, 20, now=0)


# what a reader may ask for


def test_a_reader_reads_from_its_capability_to_the_frontier():
    output = given_handed_over(h=50, upper=70)
    assert [check_readable(output, A, t, now=0).number for t in (40, 49, 50, 69)] == [1, 1, 2, 2]
    with pytest.raises(Forgotten) as forgotten:
        check_readable(output, A, 39, now=0)
    assert (forgotten.value.t, forgotten.value.since) == (39, 40)
    with pytest.raises(NotYet) as early:
        check_readable(output, A, 70, now=0)
    assert (early.value.t, early.value.frontier) == (70, 70)


def test_an_expired_reader_gets_no_answer_even_for_a_time_that_is_there():
    for ask in (check_readable, lambda *args: check_followable(*args[:3], 0, args[3])):
        with pytest.raises(ReaderExpired):
            ask(given_output(70), A, 45, 1_000)


def test_a_tainted_rendition_answers_below_the_frontier_and_says_why_beyond_it():
    output = mark_tainted(given_output(70), 1, TAINT)
    assert check_readable(output, A, 69, now=0).number == 1
    with pytest.raises(Tainted):
        check_readable(output, A, 70, now=0)


@pytest.mark.parametrize(
    ("after", "since", "is_allowed"), [(39, 0, True), (38, 0, False), (39, 40, False), (40, 40, True)]
)
def test_changes_continue_a_state_that_the_reader_may_have(after, since, is_allowed):
    if is_allowed:
        check_followable(given_output(70), A, after, since, now=0)
    else:
        with pytest.raises(Forgotten):
            check_followable(given_output(70), A, after, since, now=0)


ROWS = RowsInMemory(
    {1: updates_of({10: {"a": 1}, 60: {"b": 1}}), 2: updates_of({10: {"A": 1}, 60: {"B": 1}})}
)


def test_changes_across_a_return_accumulate_to_the_active_rendition_at_every_time():
    output = roll_back(given_handed_over(h=50, upper=70), 1, open_at(90), signed(5))
    found = list(changes(output, ROWS, after=0))
    assert found[:4] == [("a", 10, 1), ("a", 50, -1), ("A", 50, 1), ("B", 60, 1)]
    assert found[4:] == [("A", 70, -1), ("B", 70, -1), ("a", 70, 1), ("b", 70, 1)]
    for t in range(1, 90):
        assert accumulate(found, t) == ROWS.state(output.resolve(t), t)


@pytest.mark.parametrize(("after", "expected"), [(49, {50, 60}), (50, {60}), (60, set()), (99, set())])
def test_changes_begin_after_the_given_time(after, expected):
    assert {one.t for one in changes(given_handed_over(h=50, upper=70), ROWS, after)} == expected


def test_a_handover_between_equal_renditions_changes_nothing():
    same = RowsInMemory({1: ROWS.held[1], 2: ROWS.held[1]})
    assert [one.t for one in changes(given_handed_over(h=50, upper=70), same, after=0)] == [10, 60]


def test_updates_are_summed_by_row_and_time():
    found = consolidate(updates_of({20: {"b": 1}, 10: {"a": 1}}) + updates_of({20: {"b": -1, "c": 2}}))
    assert found == [RowUpdate("a", 10, 1), RowUpdate("c", 20, 2)]
    assert accumulate(found, 10) == {"a": 1}
    assert difference(9, {"a": 1, "b": 1}, {"b": 1, "c": 1}) == [("a", 9, -1), ("c", 9, 1)]


# when a rendition may go


@pytest.mark.parametrize(("held", "numbers"), [(50, []), (51, [1])])
def test_a_rendition_is_retirable_when_every_reader_is_later_than_its_end(held, numbers):
    found = retirable(given_handed_over(h=50), given_readers(a=held), now=0)
    assert [one.number for one in found] == numbers


def test_forgotten_and_never_used_renditions_are_retirable_whatever_readers_hold():
    assert [one.number for one in retirable(given_handed_over(h=50), given_readers(50, a=50), now=0)] == [1]
    abandoned = abandon(given_verified(), 2, OPERATOR)
    assert [one.number for one in retirable(abandoned, given_readers(a=0), now=0)] == [2]
    assert forget_times_of(given_readers(a=0), abandoned, 2, now=0) == given_readers(a=0)


def test_the_active_rendition_is_not_retirable_even_if_it_is_tainted():
    output = mark_tainted(given_output(50), 1, TAINT)
    assert retirable(output, given_readers(), now=0) == []
    with pytest.raises(StillActive):
        forget_times_of(given_readers(), output, 1, now=0)


def test_a_return_in_the_middle_of_retiring_keeps_the_rendition():
    output = given_handed_over(h=50, upper=70)
    since = forget_times_of(given_readers(), output, 1, now=0).since
    output = roll_back(output, 1, open_at(90), signed(5))
    with pytest.raises(StillActive):
        begin_retire(output, 1, since, OPERATOR)


def test_a_place_is_dropped_only_after_its_row_says_so():
    output = given_handed_over(h=50)
    assert not may_drop_place(output, 1)
    assert may_drop_place(begin_retire(output, 1, 50, OPERATOR), 1)
