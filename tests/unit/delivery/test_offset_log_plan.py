"""What of an offset log goes and what stays: T26, T27 and G14 of `specs/transporter.md`, on plain rows."""

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import RowRange
from tidemark.delivery.state.offset_log import compact_writer, plan_writer
from tidemark.delivery.state.offset_log_plan import OffsetPlan, ack_row, plan_offsets
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import OffsetEntry, OffsetEntryKind

pytestmark = pytest.mark.unit

KINDS = {"c": OffsetEntryKind.COMMIT, "r": OffsetEntryKind.REWIND, "a": OffsetEntryKind.ACKNOWLEDGE}
HISTORIES = st.text("ccccra", max_size=40)


def rows_of(history: str, first: int = 1) -> list[tuple[str, str]]:
    """An entry per letter, oldest first: commit, rewind or acknowledge; a dot is a version without one."""
    rows = []
    for version, letter in enumerate(history, first):
        if letter != ".":
            entry = OffsetEntry(KINDS[letter], version, 1_000, "run-1")
            rows.append((ack_row(version), json.dumps(asdict(entry))))
    return rows


def plan_of(rows: list[tuple[str, str]]) -> OffsetPlan:
    return plan_offsets("orders", "archive", reversed(rows))


def left_of(rows: list[tuple[str, str]], plan: OffsetPlan) -> list[tuple[str, str]]:
    return [(row, body) for row, body in rows if not any(row in gone for gone in plan.ranges)]


def versions(rows) -> list[int]:
    return [int(row.removeprefix("ack/")) for row in rows]


# Example C of the document

EXAMPLE_C = [("A", 1), ("A", 8), ("B", 1), ("C", 3), ("A", 13), ("B", 12), ("C", 9), ("A", 26), ("B", 23)]
EXAMPLE_C += [("C", 27)]


@pytest.fixture
def example_c() -> Positions:
    """Its ten records; the position is cumulative (I2, I7), so it never goes back as the values do."""
    positions = Positions(MemoryConsensus(), "orders")
    state = positions.register("c0", {})
    for name, value in EXAMPLE_C:
        position = max(state.position, value)
        entry = OffsetEntry(OffsetEntryKind.COMMIT, position, 1_000, "run-1", namespaces={name: value})
        state = positions.commit(state, position, entry)
    return positions


def test_T26_the_last_value_of_every_namespace_is_left_and_compacting_again_changes_nothing(example_c):
    compact_writer(example_c, plan_writer(example_c, "c0"))
    assert list(example_c.namespaces("c0").items()) == [("A", 26), ("B", 23), ("C", 27)]
    assert [(entry.position, dict(entry.namespaces)) for entry in example_c.history("c0")] == [
        (27, {"C": 27})
    ]

    left = example_c.load("c0"), list(example_c.offset_rows("c0"))
    again = plan_writer(example_c, "c0")
    compact_writer(example_c, again)
    assert (again.ranges, again.removed) == ((), 0)
    assert (example_c.load("c0"), list(example_c.offset_rows("c0"))) == left


def test_T27_a_reload_gives_the_same_map_as_before(example_c):
    before, state = example_c.namespaces("c0"), example_c.load("c0")
    compact_writer(example_c, plan_writer(example_c, "c0"))
    again = Positions(example_c.consensus, "orders")
    assert (again.namespaces("c0"), again.load("c0").to_row()) == (before, state.to_row())


# What goes


@pytest.mark.parametrize(
    ("history", "kept"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("c", [1], id="one entry"),
        pytest.param("ccc", [3], id="commits"),
        pytest.param("cca", [3], id="an acknowledgement is the newest"),
        pytest.param("cacac", [5], id="acknowledgements have rows of their own"),
        pytest.param("r", [1], id="only a rewind"),
        pytest.param("ccr", [3], id="a rewind is the newest"),
        pytest.param("ccrcc", [3, 5], id="a rewind in between"),
        pytest.param("rcrrccrc", [1, 3, 4, 7, 8], id="several rewinds"),
        pytest.param("c..c..r.c.", [7, 9], id="versions without an entry"),
    ],
)
def test_the_newest_entry_and_every_rewind_stay(history, kept):
    rows = rows_of(history)
    plan = plan_of(rows)
    assert (versions(row for row, _ in left_of(rows, plan)), versions(reversed(plan.kept))) == (kept, kept)
    assert plan.rewinds == history.count("r")


def test_what_goes_between_two_rewinds_is_one_range_each():
    plan = plan_of(rows_of("cccrcccrccc"))
    assert plan.ranges == (
        RowRange(ack_row(9), ack_row(11)),
        RowRange(ack_row(5), ack_row(8)),
        RowRange("ack/", ack_row(4)),
    )


def test_without_a_rewind_it_is_one_range_from_the_very_beginning():
    """Not from the oldest row: the next compaction's range then covers this one."""
    assert plan_of(rows_of("ccccc", first=70)).ranges == (RowRange("ack/", ack_row(74)),)


def test_where_nothing_is_between_there_is_no_range():
    assert plan_of(rows_of("rrcrc")).ranges == (RowRange(ack_row(3), ack_row(4)),)


def test_a_plan_counts_rows_and_bytes():
    rows = rows_of("ccrcc")
    sizes = [len(row) + len(body) for row, body in rows]
    plan = plan_of(rows)
    assert (plan.rows_before, plan.rows_after, plan.removed, plan.rewinds) == (5, 2, 3, 1)
    assert (plan.bytes_before, plan.bytes_after) == (sum(sizes), sizes[2] + sizes[4])


def test_bytes_are_those_of_utf_8():
    body = json.dumps(asdict(OffsetEntry(OffsetEntryKind.COMMIT, 1, 1, "größer")), ensure_ascii=False)
    assert plan_of([(ack_row(1), body)]).bytes_before == len(ack_row(1)) + len(body) + 2


def test_a_plan_travels_as_json():
    plan = plan_of(rows_of("ccrcc"))
    assert OffsetPlan.from_dict(json.loads(json.dumps({**plan.to_dict(), "executed": True}))) == plan


# Any history


@given(HISTORIES)
def test_every_rewind_and_the_newest_entry_stay_whatever_was_there(history):
    rows = rows_of(history)
    left = left_of(rows, plan_of(rows))
    rewinds = [row for row, letter in zip(rows, history, strict=True) if letter == "r"]
    assert set(left) == {*rewinds, *rows[-1:]}


@given(HISTORIES)
def test_a_plan_says_what_is_left(history):
    rows = rows_of(history)
    plan = plan_of(rows)
    left = left_of(rows, plan)
    assert (plan.rows_before, plan.rows_after) == (len(rows), len(left))
    assert plan.bytes_after == sum(len(row) + len(body) for row, body in left)
    assert list(reversed(plan.kept)) == [row for row, _ in left]


@given(HISTORIES)
def test_a_second_plan_finds_nothing(history):
    rows = rows_of(history)
    assert plan_of(left_of(rows, plan_of(rows))).ranges == ()


@given(HISTORIES, st.text("ccra", max_size=10))
def test_an_old_plan_removes_nothing_that_a_new_one_keeps(history, later):
    """A commit between a plan and its execution."""
    old, rows = rows_of(history), rows_of(history + later)
    assert set(plan_of(rows).kept) <= {row for row, _ in left_of(rows, plan_of(old))}


@given(HISTORIES, st.text("ccra", max_size=10))
def test_compacting_on_the_way_ends_like_compacting_once(history, later):
    rows = rows_of(history + later)
    halfway = left_of(rows_of(history), plan_of(rows_of(history))) + rows_of(later, len(history) + 1)
    assert left_of(halfway, plan_of(halfway)) == left_of(rows, plan_of(rows))
