"""The journal writer's pointers: when they move, and when those it finds are not its own."""

import pytest
from tests.support.faults import Killed
from tests.support.journal_samples import ActionLog, JournalWorld, Lease, journal_writer
from tests.support.log_samples import given_binding
from tests.support.memory_journal import MemoryJournal, MemoryTables

from tidemark.delivery.state.lease import LeaseLost
from tidemark.delivery.writer import Past
from tidemark.faults import FaultPoint
from tidemark.log.model.binding import Binding
from tidemark.writers.journal.errors import OffsetsBegunAnew, TablesChanged

pytestmark = pytest.mark.unit

BINDING = given_binding(1_000_000, 100, ("invoices", 0, 10, 13), ("orders", 1, 7, 10))
"""Ids 100 to 102, and 103 to 105."""
INVOICES, ORDERS = ("invoices", 0), ("orders", 1)
BEFORE = {INVOICES: 9, ORDERS: 6}
"""The last offsets bound before."""


@pytest.fixture
def tables() -> MemoryTables:
    return MemoryTables(MemoryJournal())


def settle(tables: MemoryTables, position: int, **keys: object) -> dict[tuple[str, int], int]:
    journal_writer(tables, **keys).settle(BINDING, position, Lease(tables))
    return tables.journal.pointers


def examine(tables: MemoryTables, past: Past, binding: Binding = BINDING, **keys: object) -> None:
    journal_writer(tables, **keys).examine(binding, past)


def point(tables: MemoryTables, **offsets: int) -> None:
    """Pointers; one inside the binding as this writer left it."""
    for topic, offset in offsets.items():
        place = (topic, {"invoices": 0, "orders": 1}[topic])
        is_inside = any(
            s.lower <= offset < s.upper for s in BINDING.slices if (s.topic, s.partition) == place
        )
        written = BINDING.write_time(BINDING.id_of(*place, offset)) if is_inside else 0
        tables.journal.point(*place, offset, written)


# Settling


def test_settling_a_binding_moves_the_pointers_to_the_end_of_every_slice(tables):
    assert settle(tables, BINDING.end) == {INVOICES: 12, ORDERS: 9}


def test_a_pointer_has_the_write_time_of_its_offset(tables):
    settle(tables, BINDING.end)
    assert [one.write_time for one in tables.written] == [1_000_002, 1_000_005]


def test_a_pointer_says_the_time_of_the_binding(tables):
    settle(tables, BINDING.end)
    (row,) = tables.journal.pointer2.read(ORDERS).values()
    assert row == {"offset": 9, "created": 1_000_000, "updated": 1_000_000}


@pytest.mark.parametrize(
    ("position", "pointers"),
    [
        pytest.param(99, {}, id="before the binding"),
        pytest.param(100, {INVOICES: 10}, id="in the first slice"),
        pytest.param(102, {INVOICES: 12}, id="at the end of the first slice"),
        pytest.param(104, {INVOICES: 12, ORDERS: 8}, id="in the second slice"),
    ],
)
def test_pointers_move_as_far_as_a_position_in_the_middle(tables, position, pointers):
    assert settle(tables, position) == pointers


def test_pointers_move_over_offsets_without_a_message():
    log = ActionLog()
    log.publish("A1 - -", "- -")
    house = JournalWorld(log)
    house.go("in bulk")
    assert house.journal.pointers == {("orders", 0): 2, ("orders", 1): 1}


def test_no_pointer_of_a_topic_that_is_kept_out_moves(tables):
    assert settle(tables, BINDING.end, namespaces="^inv") == {INVOICES: 12}


def test_pointers_never_move_back(tables):
    point(tables, invoices=12, orders=20)
    assert settle(tables, 104) == {INVOICES: 12, ORDERS: 20}
    assert tables.written == []


def test_a_pointer_that_moves_on_keeps_the_time_it_was_made(tables):
    settle(tables, 103)
    later = given_binding(2_000_000, 106, ("orders", 1, 10, 12))
    journal_writer(tables).settle(later, later.end, Lease(tables))
    (row,) = tables.journal.pointer2.read(ORDERS).values()
    assert row == {"offset": 11, "created": 1_000_000, "updated": 2_000_000}


def test_a_process_that_lost_the_writer_moves_no_pointer(tables):
    with pytest.raises(LeaseLost):
        journal_writer(tables).settle(BINDING, BINDING.end, Lease(tables, lost_after=0))
    assert tables.journal.pointers == {}


# Examining


@pytest.mark.parametrize("offset", [0, 6, 8, 9])
def test_before_the_first_delivery_a_pointer_may_be_anywhere_up_to_the_binding_s_end(tables, offset):
    point(tables, orders=offset)
    examine(tables, Past(-1, -1, {}))


def test_before_the_first_delivery_tables_that_are_ahead_are_refused_with_how_to_take_them_over(tables):
    point(tables, orders=1_000)
    with pytest.raises(TablesChanged, match="start: pointers"):
        examine(tables, Past(-1, -1, {}))


def test_before_the_first_delivery_no_pointer_is_good_too(tables):
    examine(tables, Past(-1, -1, {}))


def test_pointers_where_the_writer_left_them_are_good(tables):
    point(tables, invoices=9, orders=6)
    examine(tables, Past(99, 99, BEFORE))


def test_a_partition_that_is_bound_for_the_first_time_needs_no_pointer(tables):
    point(tables, invoices=9)
    examine(tables, Past(99, 99, {INVOICES: 9}))


@pytest.mark.parametrize(("found", "least", "position"), [(None, 6, 99), (5, 6, 99), (7, 8, 104)])
def test_a_pointer_behind_the_position_is_not_what_the_writer_left(tables, found, least, position):
    point(tables, invoices=12, **({} if found is None else {"orders": found}))
    with pytest.raises(TablesChanged) as changed:
        examine(tables, Past(position, position, BEFORE))
    assert (changed.value.topic, changed.value.found, changed.value.least) == (
        "orders",
        -1 if found is None else found,
        least,
    )


def test_what_a_pointer_behind_means_is_said(tables):
    with pytest.raises(
        TablesChanged, match=r"For invoices/0 pointer2 has no pointer, .* it should be 9 at least"
    ):
        examine(tables, Past(99, 99, BEFORE))


def test_a_pointer_beyond_everything_delivered_is_of_another_replicator(tables):
    point(tables, invoices=9, orders=10)
    with pytest.raises(TablesChanged, match=r"orders/1 pointer2 says offset 10, .* it should be 9 at most"):
        examine(tables, Past(99, 99, BEFORE))


def test_a_pointer_at_the_end_of_the_binding_is_what_a_crash_before_the_commit_leaves(tables):
    point(tables, invoices=12, orders=9)
    examine(tables, Past(99, 99, BEFORE))


def test_i18_a_pointer_inside_the_binding_that_another_replicator_wrote_is_refused(tables):
    """Item 18: the next binding reaches past the other replicator's pointers."""
    point(tables, invoices=9)
    tables.journal.point("orders", 1, 8, write_time=5_000_000)
    with pytest.raises(
        TablesChanged, match=r"says offset 8, .* 6 at most.* journal take-over orders journal"
    ):
        examine(tables, Past(99, 99, BEFORE))


@pytest.mark.parametrize("written", [0, 999_999, 1_000_000, 5_000_000])
def test_i18_before_the_first_delivery_a_pointer_has_to_be_older_than_the_binding(tables, written):
    """A replicator that was started again since the binding was made would hide what is written with it."""
    tables.journal.point("orders", 1, 8, write_time=written)
    if written < BINDING.t:
        examine(tables, Past(-1, -1, {}))
    else:
        with pytest.raises(TablesChanged):
            examine(tables, Past(-1, -1, {}))


@pytest.mark.parametrize("offset", [8, 9, 10, 50], ids=["inside", "at its end", "behind it", "far behind it"])
def test_i18_pointers_that_were_taken_over_may_be_anywhere_up_to_there(tables, offset):
    point(tables, invoices=9)
    tables.journal.point("orders", 1, offset, write_time=5_000_000)
    examine(tables, Past(99, 99, BEFORE, {ORDERS: 50}))


@pytest.mark.parametrize("offset", [8, 10])
def test_i18_beyond_the_pointers_that_were_taken_over_they_are_of_another_replicator_again(tables, offset):
    point(tables, invoices=9)
    tables.journal.point("orders", 1, offset, write_time=5_000_000)
    with pytest.raises(TablesChanged):
        examine(tables, Past(99, 99, BEFORE, {ORDERS: 7}))


@pytest.mark.parametrize("reached", [100, 105, 1_000])
def test_a_pointer_beyond_is_good_where_the_writer_has_been_before(tables, reached):
    point(tables, invoices=500, orders=500)
    examine(tables, Past(99, reached, BEFORE))


def test_a_pointer_behind_is_not_good_where_the_writer_has_been_before_either(tables):
    point(tables, invoices=500, orders=5)
    with pytest.raises(TablesChanged):
        examine(tables, Past(99, 1_000, BEFORE))


@pytest.mark.parametrize("reached", [-1, 99, 1_000])
def test_offsets_that_begin_anew_are_refused(tables, reached):
    with pytest.raises(OffsetsBegunAnew) as begun:
        examine(tables, Past(reached, reached, {INVOICES: 9, ORDERS: 7}))
    assert (begun.value.topic, begun.value.lower, begun.value.before) == ("orders", 7, 7)


def test_a_topic_that_is_kept_out_is_not_examined(tables):
    point(tables, invoices=9)
    examine(tables, Past(99, 99, {INVOICES: 9, ORDERS: 50}), namespaces="^inv")


# With the real delivery


@pytest.fixture
def house() -> JournalWorld:
    """Two bindings, of which the first is delivered."""
    log = ActionLog()
    log.publish("A1 A2", "j:A1")
    house = JournalWorld(log)
    house.go("in bulk")
    log.publish("A3 P", "j:A2")
    return house


def test_after_a_crash_between_settling_and_committing_it_goes_on(house, at_point):
    at_point(FaultPoint.DELIVER_SETTLED, house.die)
    with pytest.raises(Killed):
        house.go("in bulk")
    house.live_again()
    assert house.position(house.process) == 2
    house.go("in bulk")
    assert (house.position(house.process), house.gate(house.process)) == (5, None)


def test_after_a_rewind_it_goes_on_and_writes_nothing(house):
    house.go("in bulk")
    house.rewind("journal", -1)
    house.go("in bulk")
    assert (house.position(house.process), house.process.tables.written) == (5, [])


def test_tables_that_were_emptied_stop_the_writer(house):
    house.journal = MemoryJournal()
    house.go("in bulk")
    gate = house.gate(house.process)
    assert "orders/0 pointer2 has no pointer, but it should be 1 at least" in gate.reason
    assert house.process.tables.written == []


def test_tables_that_were_emptied_are_filled_again_after_a_rewind(house):
    house.go("in bulk")
    told, house.journal = house.told("k", "j"), MemoryJournal()
    house.rewind("journal", -1)
    house.go("in bulk")
    assert (house.told("k", "j"), house.gate(house.process)) == (told, None)


def test_another_replicator_that_writes_to_the_tables_stops_the_writer(house):
    house.journal.point("orders", 0, 4, write_time=10**15)
    house.go("in bulk")
    assert "orders/0 pointer2 says offset 4, but it should be 3 at most" in house.gate(house.process).reason
