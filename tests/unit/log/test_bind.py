"""bind: which binding a run works on, and what it refuses to bind."""

import pytest
from tests.unit.log.samples import RacingConsensus, add_binding, given_binding, given_offsets

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import Kind, ObjectKey
from tidemark.errors import TidemarkError
from tidemark.log.bind import ClockOff, Loss, OffsetsLost, bind, find_unfinished, refuse_clock, refuse_loss
from tidemark.log.binding import Offsets, Slice
from tidemark.log.control import LogControl, LogHead

pytestmark = pytest.mark.unit

BINDINGS = ObjectKey(Kind.BINDINGS, "orders")
NOW = 1_000_000
LIMIT = 100


@pytest.fixture
def consensus() -> RacingConsensus:
    return RacingConsensus()


@pytest.fixture
def control(consensus) -> LogControl:
    return LogControl(consensus, "orders")


def mark_published(control: LogControl, binding) -> None:
    """What ``publish`` changes in the control plane."""
    control.replace_log(control.log_head().version, LogHead(t=binding.t, end=binding.end))


def rows_of(consensus: MemoryConsensus) -> list[str]:
    return list(consensus.scan(BINDINGS, "").rows)


# The first and the next


def test_the_first_binding_takes_everything_from_id_0(control):
    binding = bind(control, given_offsets(invoices=2, orders=5), LIMIT, NOW, "run-1")
    assert binding == given_binding(NOW, 0, ("invoices", 0, 0, 2), ("orders", 0, 0, 5))


def test_a_binding_is_durable_before_it_is_answered(control):
    binding = bind(control, given_offsets(orders=5), LIMIT, NOW, "run-1")
    assert control.binding(NOW) == binding


def test_the_next_binding_goes_on_where_the_last_one_ended(control):
    mark_published(control, bind(control, given_offsets(orders=5), LIMIT, NOW, "run-1"))
    second = bind(control, given_offsets(orders=8), LIMIT, NOW + 60_000_000, "run-2")
    assert second == given_binding(NOW + 60_000_000, 5, ("orders", 0, 5, 8), run_id="run-2")


def test_a_binding_takes_at_most_the_limit(control):
    assert bind(control, given_offsets(orders=500), LIMIT, NOW, "run-1").width == LIMIT


def test_the_next_t_is_past_every_write_time_handed_out(control):
    mark_published(control, bind(control, given_offsets(orders=50), LIMIT, NOW, "run-1"))
    assert bind(control, given_offsets(orders=60), LIMIT, NOW + 1, "run-2").t == NOW + 51


def test_a_clock_that_went_back_does_not_take_t_back(control):
    control.advance_upper(control.bindings_head(), NOW + 500)
    assert bind(control, given_offsets(orders=5), LIMIT, NOW, "run-1").t == NOW + 500


def test_a_new_partition_starts_at_its_earliest_offset(control):
    mark_published(control, bind(control, given_offsets(orders=5), LIMIT, NOW, "run-1"))
    available = {("orders", 0): Offsets(0, 5), ("orders", 1): Offsets(70, 75)}
    assert bind(control, available, LIMIT, NOW + 100, "run-2").slices == (Slice("orders", 1, 70, 75),)


# The order of answers


def test_a_run_that_has_bound_gets_its_own_binding_again(control):
    own = bind(control, given_offsets(orders=5), LIMIT, NOW, "run-1")
    assert bind(control, given_offsets(orders=9), LIMIT, NOW + 100, "run-1") == own


def test_a_run_gets_its_own_binding_even_when_it_is_published(control):
    own = bind(control, given_offsets(orders=5), LIMIT, NOW, "run-1")
    mark_published(control, own)
    assert bind(control, given_offsets(orders=9), LIMIT, NOW + 100, "run-1") == own


def test_a_run_s_own_binding_comes_before_an_older_unpublished_one(control):
    older = given_binding(10, 0, ("orders", 0, 0, 5), run_id="older")
    own = given_binding(20, 5, ("orders", 0, 5, 6), run_id="own")
    add_binding(control, older)
    add_binding(control, own)
    assert bind(control, given_offsets(orders=9), LIMIT, NOW, "own") == own


def test_what_is_bound_and_unpublished_comes_before_anything_new(control):
    unpublished = bind(control, given_offsets(orders=5), LIMIT, NOW, "run-1")
    assert bind(control, given_offsets(orders=9), LIMIT, NOW + 100, "run-2") == unpublished


def test_of_several_unpublished_bindings_the_oldest_comes_first(control):
    bindings = [given_binding(10 * (i + 1), i, ("orders", 0, i, i + 1), run_id=f"run-{i}") for i in range(3)]
    for binding in bindings:
        add_binding(control, binding)
    mark_published(control, bindings[0])
    assert bind(control, given_offsets(orders=9), LIMIT, NOW, "run-9") == bindings[1]


def test_going_on_with_what_is_unpublished_changes_nothing(control, consensus):
    bind(control, given_offsets(orders=5), LIMIT, NOW, "run-1")
    before = control.bindings_head()
    bind(control, given_offsets(orders=9), LIMIT, NOW + 100, "run-2")
    assert control.bindings_head() == before


def test_nothing_is_unfinished_when_everything_is_published(control):
    mark_published(control, bind(control, given_offsets(orders=5), LIMIT, NOW, "run-1"))
    assert find_unfinished(control, "run-2") is None


# Nothing new


def test_nothing_new_is_no_binding(control):
    assert bind(control, given_offsets(orders=0), LIMIT, NOW, "run-1") is None


def test_nothing_new_makes_no_row_but_advances_upper(control, consensus):
    mark_published(control, bind(control, given_offsets(orders=5), LIMIT, NOW, "run-1"))
    rows = rows_of(consensus)
    bind(control, given_offsets(orders=5), LIMIT, NOW + 500, "run-2")
    assert rows_of(consensus) == rows
    assert control.bindings_head().upper == NOW + 500


def test_nothing_new_keeps_what_is_bound(control):
    mark_published(control, bind(control, given_offsets(orders=5), LIMIT, NOW, "run-1"))
    bind(control, given_offsets(orders=5), LIMIT, NOW + 500, "run-2")
    head = control.bindings_head()
    assert (head.newest, head.reached) == (NOW, {("orders", 0): 5})


def test_a_run_that_found_nothing_may_bind_later(control):
    bind(control, given_offsets(orders=0), LIMIT, NOW, "run-1")
    assert bind(control, given_offsets(orders=3), LIMIT, NOW + 500, "run-1").width == 3


# Races


def test_two_binders_go_on_with_the_winner_s_binding(control, consensus):
    winners = []
    consensus.before_next_commit = lambda: winners.append(
        bind(control, given_offsets(orders=4), LIMIT, NOW, "winner")
    )
    loser = bind(control, given_offsets(orders=5), LIMIT, NOW, "loser")
    assert winners == [given_binding(NOW, 0, ("orders", 0, 0, 4), run_id="winner")]
    assert loser == winners[0]


def test_a_binder_that_lost_leaves_no_row(control, consensus):
    consensus.before_next_commit = lambda: bind(control, given_offsets(orders=4), LIMIT, NOW, "winner")
    bind(control, given_offsets(orders=5), LIMIT, NOW, "loser")
    assert rows_of(consensus) == ["head", "run/winner", "t/00000000000001000000"]


def test_a_binder_that_lost_to_its_own_run_gets_the_run_s_binding(control, consensus):
    consensus.before_next_commit = lambda: bind(control, given_offsets(orders=4), LIMIT, NOW, "run-1")
    again = bind(control, given_offsets(orders=5), LIMIT, NOW, "run-1")
    assert again == given_binding(NOW, 0, ("orders", 0, 0, 4))


def test_a_binder_that_saw_nothing_new_goes_on_with_what_another_bound(control, consensus):
    consensus.before_next_commit = lambda: bind(control, given_offsets(orders=4), LIMIT, NOW, "winner")
    found = bind(control, given_offsets(orders=0), LIMIT, NOW, "loser")
    assert found == given_binding(NOW, 0, ("orders", 0, 0, 4), run_id="winner")


def test_a_binder_that_lost_to_nothing_new_has_nothing_to_do_yet(control, consensus):
    consensus.before_next_commit = lambda: bind(control, given_offsets(orders=0), LIMIT, NOW, "winner")
    assert bind(control, given_offsets(orders=5), LIMIT, NOW, "loser") is None


def test_a_binding_made_while_a_binder_looks_around_comes_before_a_new_one(control, consensus):
    """The first look found nothing unfinished; what was bound since then must not be passed by."""
    consensus.after_next_head = lambda: bind(control, given_offsets(orders=500), LIMIT, NOW, "other")
    found = bind(control, given_offsets(orders=500), LIMIT, NOW + 100, "late")
    assert found == given_binding(NOW, 0, ("orders", 0, 0, 100), run_id="other")


# Refusals


def test_offsets_removed_before_their_capture_are_refused():
    with pytest.raises(OffsetsLost) as refusal:
        refuse_loss("orders", {("events", 3): 5}, {("events", 3): Offsets(10, 20)})
    error = refusal.value
    assert (error.pipeline, error.topic, error.partition, error.loss) == (
        "orders",
        "events",
        3,
        Loss.RETENTION,
    )
    assert str(error) == (
        "orders: events/3 has lost records: offsets 5 to 9 were removed before their capture. "
        "Nothing was bound. Restore the topic, or find out why it was changed before going on."
    )


def test_a_partition_that_became_shorter_is_refused():
    with pytest.raises(OffsetsLost) as refusal:
        refuse_loss("orders", {("events", 3): 5}, {("events", 3): Offsets(0, 4)})
    error = refusal.value
    assert (error.pipeline, error.topic, error.partition, error.loss) == (
        "orders",
        "events",
        3,
        Loss.TRUNCATED,
    )
    assert str(error) == (
        "orders: events/3 has lost records: it ends at 4, but offsets below 5 are bound already. "
        "Nothing was bound. Restore the topic, or find out why it was changed before going on."
    )


@pytest.mark.parametrize(
    "offsets",
    [
        pytest.param(Offsets(0, 5), id="nothing new"),
        pytest.param(Offsets(5, 5), id="everything captured has been removed"),
        pytest.param(Offsets(5, 9), id="removed up to what is bound"),
    ],
)
def test_what_is_captured_may_be_removed_from_kafka(offsets):
    refuse_loss("orders", {("events", 3): 5}, {("events", 3): offsets})


def test_a_partition_never_bound_has_lost_nothing():
    refuse_loss("orders", {}, {("events", 3): Offsets(10, 20)})


@pytest.mark.parametrize("offsets", [Offsets(6, 20), Offsets(0, 4)])
def test_bind_changes_nothing_over_a_loss(control, offsets):
    mark_published(control, bind(control, given_offsets(orders=5), LIMIT, NOW, "run-1"))
    before = control.bindings_head()
    with pytest.raises(OffsetsLost):
        bind(control, {("orders", 0): offsets}, LIMIT, NOW + 100, "run-2")
    assert control.bindings_head() == before


def test_what_is_unpublished_can_be_finished_over_a_loss(control):
    unpublished = bind(control, given_offsets(orders=5), LIMIT, NOW, "run-1")
    assert bind(control, {("orders", 0): Offsets(6, 20)}, LIMIT, NOW + 100, "run-2") == unpublished


@pytest.mark.parametrize(
    ("ours", "difference", "said"), [(21_000_000, 11_000_000, "+11.0 s"), (0, -10_000_001, "-10.0 s")]
)
def test_a_clock_that_is_off_is_refused(ours, difference, said):
    with pytest.raises(ClockOff) as refusal:
        refuse_clock("orders", ours, ours - difference)
    assert (refusal.value.pipeline, refusal.value.difference) == ("orders", difference)
    assert str(refusal.value).startswith(f"orders: this machine's clock is {said} away from Cassandra's.")


@pytest.mark.parametrize("difference", [-10_000_000, 0, 10_000_000])
def test_a_clock_within_10_seconds_is_taken(difference):
    refuse_clock("orders", 50_000_000 + difference, 50_000_000)


@pytest.mark.parametrize("error", [ClockOff, OffsetsLost])
def test_refusals_are_for_a_person(error):
    assert issubclass(error, TidemarkError)
