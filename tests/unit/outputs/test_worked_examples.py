"""The worked examples of `specs/renditions.md`, by their numbers.

Where the example and the design count differently, the design holds: the frontier after a handover is the
upper of the new rendition, not h + 1, and ``since`` is raised to the end of the old rendition's use, not to
one more. 3.2 and the first half of 3.4 are about bindings: `tests/unit/log/test_worked_examples.py`. Of 3.3,
3.6 and 3.7 the uppers of single shards and of state have no counterpart: a rendition has one position, and
the digests of all shards of a time are one row.
"""

import pytest
from tests.support.output_samples import (
    OPERATOR,
    TAINT,
    RowsInMemory,
    evidence,
    given_handed_over,
    given_output,
    given_readers,
    given_verified,
    open_at,
    proposal,
    sides,
    updates_of,
)

from tidemark.log.model.binding import Binding, Slice
from tidemark.outputs.errors import NotForgotten, Tainted
from tidemark.outputs.model.capability import GRACE, expire, move_forward, raise_since, register
from tidemark.outputs.model.digest import ShardDigest, TimeDigests, differing_shards
from tidemark.outputs.model.handover import advance_frontier, hand_over
from tidemark.outputs.model.lifecycle import begin_retire, declare, mark_dropped, mark_tainted, mark_verified
from tidemark.outputs.model.reading import activity, changes, check_readable
from tidemark.outputs.model.rendition import RenditionState
from tidemark.outputs.model.retention import forget_times_of
from tidemark.outputs.model.updates import RowUpdate, accumulate, consolidate, difference
from tidemark.outputs.model.upper import upper_of
from tidemark.outputs.reader_errors import Forgotten, NotYet, ReaderExpired, StillNeeded

pytestmark = pytest.mark.unit

# 3.1: handover r1 -> r2 at h = 50

R1 = updates_of(
    {
        10: {"alice=100": 1},
        20: {"bob=50": 1},
        30: {"alice=100": -1, "alice=120": 1},
        40: {"carol=7": 1},
        50: {"bob=50": -1, "bob=55": 1},
        60: {"dave=5": 1},
    }
)
R2 = updates_of(
    {
        10: {"alice=100": 1},
        20: {"bob=49": 1},
        30: {"alice=100": -1, "alice=120": 1},
        50: {"bob=49": -1, "bob=54": 1},
        60: {"dave=5": 1},
    }
)
ROWS = RowsInMemory({1: R1, 2: R2})


def test_3_1_the_metadata_has_both_updates_at_one_time():
    assert activity(given_handed_over(h=50)) == [(1, 0, 1), (1, 50, -1), (2, 50, 1)]


def test_3_1_what_a_reader_emits():
    found = list(changes(given_handed_over(h=50, upper=70), ROWS, after=0))
    assert [one for one in found if one.t < 50] == [one for one in R1 if one.t < 50]
    assert [one for one in found if one.t == 50] == [
        RowUpdate("bob=50", 50, -1),
        RowUpdate("carol=7", 50, -1),
        RowUpdate("bob=54", 50, 1),
    ]
    assert [one for one in found if one.t > 50] == [RowUpdate("dave=5", 60, 1)]


@pytest.mark.parametrize(
    ("at", "state"),
    [
        (40, {"alice=120", "bob=50", "carol=7"}),
        (50, {"alice=120", "bob=54"}),
        (60, {"alice=120", "bob=54", "dave=5"}),
    ],
)
def test_3_1_what_a_reader_accumulates(at, state):
    found = changes(given_handed_over(h=50, upper=70), ROWS, after=0)
    assert accumulate(found, at) == dict.fromkeys(state, 1)


def test_3_1_trap_2_2_negating_the_old_one_at_h_leaves_rows_behind():
    wrong = difference(50, accumulate(R1, 50), accumulate(R2, 50))
    before = [one for one in R1 if one.t < 50]
    state = accumulate([*before, *wrong])
    assert (state["bob=50"], state["bob=54"], state["bob=55"]) == (1, 1, -1)
    right = [one for one in changes(given_handed_over(), ROWS, after=49) if one.t == 50]
    assert consolidate(wrong) != right
    assert accumulate([*before, *right]) == accumulate(R2, 50)


def test_3_1_trap_2_2_the_old_one_s_updates_from_h_on_are_not_forwarded():
    found = list(changes(given_handed_over(h=50, upper=70), ROWS, after=40))
    assert "bob=55" not in {one.row for one in found}
    assert [one.row for one in found].count("dave=5") == 1


def test_3_1_a_late_reader_has_the_state_of_the_old_one():
    output = given_handed_over(h=50, upper=70)
    late = ROWS.state(output.resolve(55), 55)
    assert late == {"alice=120": 1, "bob=54": 1} == accumulate(changes(output, ROWS, after=0), 55)


def test_3_1_a_read_before_the_handover_stays_the_old_one_s():
    output = given_handed_over(h=50, upper=70)
    assert output.resolve(40).number == 1
    assert ROWS.state(output.resolve(40), 40) == {"alice=120": 1, "bob=50": 1, "carol=7": 1}


def test_3_1_frontier_steps():
    output = given_output(frontier=45)
    assert output.resolve(44).number == 1
    with pytest.raises(NotYet):
        output.resolve(45)  # although rendition 1 itself has come to 60
    output = advance_frontier(output, 1, 50)
    assert output.resolve(49).number == 1
    with pytest.raises(NotYet):
        output.resolve(50)
    output = given_handed_over(h=50, upper=51)
    assert (output.resolve(49).number, output.resolve(50).number) == (1, 2)
    with pytest.raises(NotYet) as refusal:
        output.resolve(51)
    assert (refusal.value.t, refusal.value.frontier) == (51, 51)


def test_3_1_no_handover_is_before_the_frontier():
    output = given_handed_over(h=50, upper=51)
    output = mark_verified(declare(output, proposal(3)), 3, evidence(3, active=2))
    output = hand_over(output, 3, open_at(90), sides(3, active=2), proposal(3).signed)
    assert [one.h for one in output.handovers] == [0, 50, 51]


@pytest.mark.parametrize("held", [45, 50], ids=["before h", "at h: trap 2.4"])
def test_3_1_a_reader_at_or_before_h_keeps_the_old_rendition(held):
    output, readers = given_handed_over(h=50), given_readers(A=60, B=held)
    with pytest.raises(StillNeeded) as refusal:
        forget_times_of(readers, output, 1, now=0)
    assert (refusal.value.reader, refusal.value.capability, refusal.value.since) == ("B", held, 50)
    with pytest.raises(NotForgotten):
        begin_retire(output, 1, readers.since, OPERATOR)


def test_3_1_the_old_rendition_goes_when_every_reader_is_later():
    output, readers = given_handed_over(h=50), given_readers(A=60, B=50)
    readers = forget_times_of(move_forward(readers, "B", 51, now=0), output, 1, now=0)
    assert readers.since == 50
    output = mark_dropped(begin_retire(output, 1, readers.since, OPERATOR), 1)
    assert output.rendition(1).state is RenditionState.DROPPED
    assert declare(output, proposal(3)).renditions[-1].number == 3
    with pytest.raises(Forgotten) as refusal:
        output.resolve(49)
    assert refusal.value.since == 50
    assert output.resolve(50).number == 2


def test_3_1_an_expired_reader_has_the_same_effect_and_learns_it_at_its_next_call():
    output, readers = given_handed_over(h=50), given_readers(deadline=1_000, B=45)
    with pytest.raises(StillNeeded):
        forget_times_of(readers, output, 1, now=1_000 + GRACE - 1)
    held = readers.capabilities["B"]
    readers = forget_times_of(readers, output, 1, now=1_000 + GRACE)
    assert (readers.since, dict(readers.capabilities)) == (50, {})
    with pytest.raises(ReaderExpired):
        readers.held_by("B", now=1_000 + GRACE)
    with pytest.raises(ReaderExpired):
        check_readable(output, held, 45, now=1_000 + GRACE)


# 3.2, 3.3, 3.7: bindings and the upper

P0, P1, P2 = ("p", 0), ("p", 1), ("p", 2)


def given_bindings() -> list[Binding]:
    """The bindings of 3.2; nothing is bound at 50, where only the upper of the bindings moves."""
    table = {
        10: [(*P0, 0, 100), (*P1, 0, 40)],
        20: [(*P1, 40, 55)],
        30: [(*P0, 100, 130), (*P2, 0, 12)],
        40: [(*P0, 130, 131), (*P1, 55, 90)],
    }
    found, base = [], 0
    for t, slices in table.items():
        found.append(Binding(t, base, tuple(Slice(*one) for one in slices), f"run at {t}"))
        base = found[-1].end + 1
    return found


BOUND = {one.t: one for one in given_bindings()}


@pytest.mark.parametrize(
    ("place", "offset", "t"),
    [(P0, 99, 10), (P0, 100, 30), (P1, 39, 10), (P1, 40, 20), (P1, 55, 40), (P2, 11, 30)],
)
def test_3_2_the_time_of_an_offset_decides_which_upper_has_it(place, offset, t):
    id_ = BOUND[t].id_of(*place, offset)
    assert upper_of(51, id_, BOUND.values()) > t - 1
    assert upper_of(51, id_ - 1, BOUND.values()) <= t


def test_3_3_a_rendition_goes_on_at_its_upper_and_loses_no_message():
    reached = BOUND[20].end
    assert upper_of(51, reached, BOUND.values()) == 30
    again = next(one for one in BOUND.values() if one.base == reached + 1)
    assert (again.slices, again.width) == ((Slice("p", 0, 100, 130), Slice("p", 2, 0, 12)), 42)


def test_3_3_a_time_that_was_written_before_a_crash_is_compared_and_goes_on():
    output = given_output()
    before = TimeDigests(30, (ShardDigest.of([b"a"]), ShardDigest.of([b"b"])))
    assert not differing_shards(output, 1, before, TimeDigests.from_json(before.to_json()))


def test_3_7_the_upper_moves_with_every_finished_binding():
    ends = [-1, BOUND[10].end, BOUND[20].end, BOUND[30].end, BOUND[40].end]
    assert [upper_of(51, end, BOUND.values()) for end in ends] == [10, 20, 30, 40, 51]


# 3.4, 3.5, 3.6: the same time computed twice


def given_digests(*rows: bytes) -> TimeDigests:
    return TimeDigests(60, (ShardDigest.of(rows),))


def test_3_4_two_runs_of_one_binding_agree_whatever_the_order_of_their_rows():
    x, y = given_digests(b"p0@131", b"p1@90", b"p2@12"), given_digests(b"p2@12", b"p0@131", b"p1@90")
    assert not differing_shards(given_output(), 1, x, y)


def test_3_4_a_run_that_used_its_own_proposal_is_found_out():
    x, y = given_digests(b"p0@131", b"p0@138"), given_digests(b"p0@131")
    assert list(differing_shards(given_output(), 1, y, x)) == [0]


def test_3_5_a_different_result_taints_and_freezes():
    output = given_output(frontier=61)
    assert list(differing_shards(output, 1, given_digests(b"a, b"), given_digests(b"b, a"))) == [0]
    output = mark_tainted(output, 1, TAINT)
    assert output.resolve(60).number == 1
    with pytest.raises(Tainted) as refusal:
        output.resolve(61)
    assert (refusal.value.number, refusal.value.t, refusal.value.frontier) == (1, 60, 61)
    with pytest.raises(Tainted):
        advance_frontier(output, 1, 71)
    assert (output.active.taint.committed, output.active.taint.found) == ("1:a71c", "1:09fe")


def test_3_5_the_next_rendition_takes_over_at_the_frozen_frontier():
    output = mark_tainted(given_verified(frontier=61), 1, TAINT)
    output = hand_over(output, 2, open_at(71), sides(), OPERATOR)
    assert (output.resolve(60).number, output.resolve(61).number) == (1, 2)
    assert output.rendition(1).state is RenditionState.TAINTED


def test_3_6_replaying_a_time_that_is_written_changes_nothing():
    output, digest = given_output(frontier=21), given_digests(b"d3")
    assert not differing_shards(output, 1, digest, given_digests(b"d3"))
    assert advance_frontier(output, 1, 11) == output


def test_3_1_readers_and_gc_with_a_reader_that_comes_at_the_last_moment():
    output, seen = given_handed_over(h=50), given_readers(A=60)
    late = register(seen, given_readers(C=30).capabilities["C"])
    with pytest.raises(StillNeeded):
        forget_times_of(late, output, 1, now=0)
    forgotten = forget_times_of(seen, output, 1, now=0)
    with pytest.raises(Forgotten):
        register(forgotten, given_readers(C=30).capabilities["C"])
    assert raise_since(forgotten, 50, now=0) == forgotten == expire(forgotten, now=0)
