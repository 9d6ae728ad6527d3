"""bind: which binding a run works on."""

import pytest
from tests.support.log_samples import add_binding, given_available, given_binding, given_kafka, mark_published

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import ObjectKey, ObjectKind
from tidemark.log.bind import bind, find_unfinished
from tidemark.log.model.binding import CapturePlace, Offsets, Slice

pytestmark = pytest.mark.unit

BINDINGS = ObjectKey(ObjectKind.BINDINGS, "orders")
NOW = 1_000_000
LIMIT = 100


def rows_of(consensus: MemoryConsensus) -> list[str]:
    return list(consensus.scan(BINDINGS, "").rows)


# The first and the next


def test_the_first_binding_takes_everything_from_id_0(control):
    binding = bind(control, given_available(invoices=2, orders=5), LIMIT, NOW, "run-1")
    assert binding == given_binding(NOW, 0, ("invoices", 0, 0, 2), ("orders", 0, 0, 5))


def test_a_binding_is_durable_before_it_is_answered(control):
    binding = bind(control, given_available(orders=5), LIMIT, NOW, "run-1")
    assert control.binding(NOW) == binding


def test_the_next_binding_goes_on_where_the_last_one_ended(control):
    mark_published(control, bind(control, given_available(orders=5), LIMIT, NOW, "run-1"))
    second = bind(control, given_available(orders=8), LIMIT, NOW + 60_000_000, "run-2")
    assert second == given_binding(NOW + 60_000_000, 5, ("orders", 0, 5, 8), run_id="run-2")


def test_a_binding_takes_at_most_the_limit(control):
    assert bind(control, given_available(orders=500), LIMIT, NOW, "run-1").width == LIMIT


def test_the_next_t_is_past_every_write_time_handed_out(control):
    mark_published(control, bind(control, given_available(orders=50), LIMIT, NOW, "run-1"))
    assert bind(control, given_available(orders=60), LIMIT, NOW + 1, "run-2").t == NOW + 51


def test_a_clock_that_went_back_does_not_take_t_back(control):
    control.advance_upper(control.bindings_head(), NOW + 500)
    assert bind(control, given_available(orders=5), LIMIT, NOW, "run-1").t == NOW + 500


def test_a_new_partition_starts_at_its_earliest_offset(control):
    mark_published(control, bind(control, given_available(orders=5), LIMIT, NOW, "run-1"))
    available = given_kafka({("orders", 0): Offsets(0, 5), ("orders", 1): Offsets(70, 75)})
    assert bind(control, available, LIMIT, NOW + 100, "run-2").slices == (Slice("orders", 1, 70, 75),)


# The order of answers


def test_a_run_that_has_bound_gets_its_own_binding_again(control):
    own = bind(control, given_available(orders=5), LIMIT, NOW, "run-1")
    assert bind(control, given_available(orders=9), LIMIT, NOW + 100, "run-1") == own


def test_a_run_gets_its_own_binding_even_when_it_is_published(control):
    own = bind(control, given_available(orders=5), LIMIT, NOW, "run-1")
    mark_published(control, own)
    assert bind(control, given_available(orders=9), LIMIT, NOW + 100, "run-1") == own


def test_a_run_s_own_binding_comes_before_an_older_unpublished_one(control):
    older = given_binding(10, 0, ("orders", 0, 0, 5), run_id="older")
    own = given_binding(20, 5, ("orders", 0, 5, 6), run_id="own")
    add_binding(control, older)
    add_binding(control, own)
    assert bind(control, given_available(orders=9), LIMIT, NOW, "own") == own


def test_what_is_bound_and_unpublished_comes_before_anything_new(control):
    unpublished = bind(control, given_available(orders=5), LIMIT, NOW, "run-1")
    assert bind(control, given_available(orders=9), LIMIT, NOW + 100, "run-2") == unpublished


def test_of_several_unpublished_bindings_the_oldest_comes_first(control):
    bindings = [given_binding(10 * (i + 1), i, ("orders", 0, i, i + 1), run_id=f"run-{i}") for i in range(3)]
    for binding in bindings:
        add_binding(control, binding)
    mark_published(control, bindings[0])
    assert bind(control, given_available(orders=9), LIMIT, NOW, "run-9") == bindings[1]


def test_going_on_with_what_is_unpublished_changes_nothing(control, consensus):
    bind(control, given_available(orders=5), LIMIT, NOW, "run-1")
    before = control.bindings_head()
    bind(control, given_available(orders=9), LIMIT, NOW + 100, "run-2")
    assert control.bindings_head() == before


def test_nothing_is_unfinished_when_everything_is_published(control):
    mark_published(control, bind(control, given_available(orders=5), LIMIT, NOW, "run-1"))
    assert find_unfinished(control, "run-2") is None


# Nothing new


def test_nothing_new_is_no_binding(control):
    assert bind(control, given_available(orders=0), LIMIT, NOW, "run-1") is None


def test_nothing_new_makes_no_row_but_advances_upper(control, consensus):
    mark_published(control, bind(control, given_available(orders=5), LIMIT, NOW, "run-1"))
    rows = rows_of(consensus)
    bind(control, given_available(orders=5), LIMIT, NOW + 500, "run-2")
    assert rows_of(consensus) == rows
    assert control.bindings_head().upper == NOW + 500


def test_nothing_new_keeps_what_is_bound(control):
    mark_published(control, bind(control, given_available(orders=5), LIMIT, NOW, "run-1"))
    bind(control, given_available(orders=5), LIMIT, NOW + 500, "run-2")
    head = control.bindings_head()
    assert (head.newest, head.reached) == (NOW, {("orders", 0): 5})


def test_a_run_that_found_nothing_may_bind_later(control):
    bind(control, given_available(orders=0), LIMIT, NOW, "run-1")
    assert bind(control, given_available(orders=3), LIMIT, NOW + 500, "run-1").width == 3


# Races


def test_two_binders_go_on_with_the_winner_s_binding(control, consensus):
    winners = []
    consensus.before_next_commit = lambda: winners.append(
        bind(control, given_available(orders=4), LIMIT, NOW, "winner")
    )
    loser = bind(control, given_available(orders=5), LIMIT, NOW, "loser")
    assert winners == [given_binding(NOW, 0, ("orders", 0, 0, 4), run_id="winner")]
    assert loser == winners[0]


def test_a_binder_that_lost_leaves_no_row(control, consensus):
    consensus.before_next_commit = lambda: bind(control, given_available(orders=4), LIMIT, NOW, "winner")
    bind(control, given_available(orders=5), LIMIT, NOW, "loser")
    assert rows_of(consensus) == ["head", "run/winner", "t/00000000000001000000"]


def test_a_binder_that_lost_to_its_own_run_gets_the_run_s_binding(control, consensus):
    consensus.before_next_commit = lambda: bind(control, given_available(orders=4), LIMIT, NOW, "run-1")
    again = bind(control, given_available(orders=5), LIMIT, NOW, "run-1")
    assert again == given_binding(NOW, 0, ("orders", 0, 0, 4))


def test_a_binder_that_saw_nothing_new_goes_on_with_what_another_bound(control, consensus):
    consensus.before_next_commit = lambda: bind(control, given_available(orders=4), LIMIT, NOW, "winner")
    found = bind(control, given_available(orders=0), LIMIT, NOW, "loser")
    assert found == given_binding(NOW, 0, ("orders", 0, 0, 4), run_id="winner")


def test_a_binder_that_lost_to_nothing_new_has_nothing_to_do_yet(control, consensus):
    consensus.before_next_commit = lambda: bind(control, given_available(orders=0), LIMIT, NOW, "winner")
    assert bind(control, given_available(orders=5), LIMIT, NOW, "loser") is None


def test_a_binding_made_while_a_binder_looks_around_comes_before_a_new_one(control, consensus):
    """The first look found nothing unfinished; what was bound since then must not be passed by."""
    consensus.after_next_head = lambda: bind(control, given_available(orders=500), LIMIT, NOW, "other")
    found = bind(control, given_available(orders=500), LIMIT, NOW + 100, "late")
    assert found == given_binding(NOW, 0, ("orders", 0, 0, 100), run_id="other")


# Where it is captured


def test_a_small_binding_says_that_a_process_captures_it_and_keeps_saying_so(control):
    binding = bind(control, given_available(orders=5), LIMIT, NOW, "run-1", in_process=5)
    assert binding.captured_by is CapturePlace.PROCESS
    assert control.binding(NOW) == binding


def test_a_larger_one_and_every_other_runs_are_captured_by_spark(control):
    binding = bind(control, given_available(orders=6), LIMIT, NOW, "run-1", in_process=5)
    assert binding.captured_by is CapturePlace.ENGINE
    assert "captured_by" not in binding.to_json()
