"""The offset log: every move of a position, forward by runs, back by people only.

T21 to T25 of `specs/transporter.md`, with its decision I1: a normal commit never takes a position back.
"""

import pytest
from tests.support.clocks import Clock
from tests.support.contracts.flaky_consensus import Fault, FlakyConsensus
from tests.support.memory_writers import Stream
from tests.support.pipeline_world import PipelineWorld

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.consensus.memory import MemoryConsensus
from tidemark.consensus.objects import ObjectKey, ObjectKind, Undecided
from tidemark.delivery.state import positions as module
from tidemark.delivery.state.lease import WriterHold, take
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import OffsetEntry, OffsetEntryKind

pytestmark = pytest.mark.unit


def given_hold(positions: Positions, name: str = "c0", holder: str = "run-1") -> WriterHold:
    return take(positions, positions.register(name, {}), holder, Clock())


def test_T21_a_new_consumer_has_an_empty_map_and_position_minus_1(positions):
    state = positions.register("c0", {})
    assert (positions.namespaces("c0"), positions.history("c0"), state.position) == ({}, [], -1)


def test_T22_a_long_offset_log_is_loaded_whole(positions, monkeypatch):
    """196 records of three namespaces in small pages, instead of 9 segments."""
    monkeypatch.setattr(module, "PAGE", 22)
    hold = given_hold(positions)
    lengths = {"namespace1": 48, "namespace2": 60, "namespace0": 88}
    names = [name for name, length in lengths.items() for _ in range(length)]
    for id_, name in enumerate(names):
        hold.commit(id_, {name: id_})
    assert positions.namespaces("c0") == {"namespace0": 195, "namespace1": 47, "namespace2": 107}
    assert (positions.load("c0").position, len(positions.history("c0", limit=500))) == (195, 196)


@pytest.mark.parametrize("smaller", [0, 41, 86])
def test_T23_a_smaller_value_changes_nothing(positions, smaller):
    hold = given_hold(positions)
    for id_ in range(88):
        hold.commit(id_, {f"namespace{id_ % 3}": id_})
    with pytest.raises(ValueError, match=f"orders/c0: {smaller} is behind the position 87"):
        hold.commit(smaller, {"namespace0": smaller})
    assert positions.namespaces("c0") == {"namespace0": 87, "namespace1": 85, "namespace2": 86}
    assert (positions.load("c0").position, positions.history("c0")[-1].position) == (87, 87)


def test_T24_an_append_that_fails_is_an_error_and_changes_nothing():
    flaky = FlakyConsensus(MemoryConsensus())
    positions = Positions(flaky, "orders")
    hold = given_hold(positions)
    flaky.arm(Fault.REQUEST_LOST)
    with pytest.raises(Undecided):
        hold.commit(7, {"orders": 7})
    assert (positions.namespaces("c0"), positions.history("c0")) == ({}, [])
    assert positions.load("c0").position == -1


def test_T25_record_4_of_example_N_does_not_take_c0_back(positions):
    c0 = given_hold(positions)
    c1 = given_hold(positions, "c1")
    for hold, value in ((c0, 1), (c0, 4), (c0, 6), (c1, 4)):
        hold.commit(value, {})
    with pytest.raises(ValueError, match="behind"):
        c0.commit(4, {})
    assert (positions.load("c0").position, positions.load("c1").position) == (6, 4)


def test_N_the_offset_log_ends_with_12_and_13(positions):
    c0, c1 = given_hold(positions), given_hold(positions, "c1")
    for hold, value in (
        *((c0, 1), (c0, 4), (c0, 6), (c1, 4)),
        *((c1, 5), (c0, 7), (c1, 7), (c0, 10), (c1, 13), (c0, 12)),
    ):
        hold.commit(value, {})
    assert [entry.position for entry in positions.history("c0")] == [1, 4, 6, 7, 10, 12]
    assert [entry.position for entry in positions.history("c1")] == [4, 5, 7, 13]


# Entries


def test_an_entry_says_what_moved_the_position_when_and_by_whom(positions):
    given_hold(positions).commit(7, {"orders": 6, "refunds": 7})
    assert positions.history("c0") == [
        OffsetEntry(OffsetEntryKind.COMMIT, 7, Clock().now, "run-1", None, {"orders": 6, "refunds": 7})
    ]


def test_a_commit_that_moves_nothing_is_no_entry(positions):
    hold = given_hold(positions)
    hold.commit(7, {})
    hold.commit(7, {"orders": 7})
    assert [entry.position for entry in positions.history("c0")] == [7]


def test_renewing_a_lease_is_no_entry(positions):
    given_hold(positions).renew()
    assert positions.history("c0") == []


def test_history_is_the_newest_entries_oldest_first(positions):
    hold = given_hold(positions)
    for position in (3, 5, 8, 13):
        hold.commit(position, {})
    assert [entry.position for entry in positions.history("c0", limit=2)] == [8, 13]


def test_order_does_not_depend_on_the_number_of_digits(positions):
    hold = given_hold(positions)
    for position in range(0, 120, 10):
        hold.commit(position, {})
    assert [entry.position for entry in positions.history("c0")] == list(range(0, 120, 10))


# Namespaces


def test_a_namespace_has_one_row_that_is_updated_in_place(positions):
    hold = given_hold(positions)
    hold.commit(3, {"orders": 3})
    hold.commit(9, {"orders": 9})
    assert positions.namespaces("c0") == {"orders": 9}


def test_a_namespace_that_a_commit_does_not_name_stays(positions):
    hold = given_hold(positions)
    hold.commit(3, {"orders": 2, "refunds": 3})
    hold.commit(9, {"orders": 9})
    assert positions.namespaces("c0") == {"orders": 9, "refunds": 3}


def test_I2_the_position_is_not_derived_from_the_namespaces(positions):
    """A binding that ends with a hole: its end is finished, and no namespace has that id."""
    given_hold(positions).commit(9, {"orders": 5, "refunds": 7})
    assert (positions.load("c0").position, max(positions.namespaces("c0").values())) == (9, 7)


def test_I7_ids_of_namespaces_come_from_the_log(house: PipelineWorld):
    house.publish(orders="ab-", refunds="c-")
    house.publish(refunds="-d-")
    writer = Stream()
    house.deliver(writer)
    assert house.positions.namespaces("stream") == {"orders": 1, "refunds": 6}


def test_a_position_in_the_middle_of_a_binding_has_the_ids_up_to_it(house: PipelineWorld):
    house.publish(orders="abc", refunds="de")
    writer = Stream(bad={1})
    house.deliver(writer)
    assert (house.position(writer), house.positions.namespaces("stream")) == (0, {"orders": 0})


# Rewinds


def given_rewound(house: PipelineWorld, position: int) -> Stream:
    house.publish(orders="abc", refunds="de")
    house.publish(refunds="f")
    writer = Stream()
    house.deliver(writer)
    house.rewind("stream", position)
    return writer


def test_a_rewind_is_an_entry_of_its_own_with_who_and_why(house: PipelineWorld):
    given_rewound(house, 4)
    entry = house.positions.history("stream")[-1]
    assert (entry.kind, entry.position, entry.by, entry.reason) == (
        OffsetEntryKind.REWIND,
        4,
        "ann",
        "to test rewind",
    )


def test_a_rewind_takes_the_namespaces_back_to_what_the_log_has_up_to_there(house: PipelineWorld):
    given_rewound(house, 3)
    assert house.positions.namespaces("stream") == {"orders": 2, "refunds": 3}


def test_a_rewind_leaves_no_namespace_of_which_nothing_is_finished(house: PipelineWorld):
    given_rewound(house, 1)
    assert house.positions.namespaces("stream") == {"orders": 1}


def test_a_rewind_names_the_namespaces_that_it_moved(house: PipelineWorld):
    given_rewound(house, 3)
    assert house.positions.history("stream")[-1].namespaces == {"refunds": 3}


def test_what_was_delivered_again_after_a_rewind_is_as_before(house: PipelineWorld):
    writer = given_rewound(house, 1)
    house.deliver(writer)
    assert house.positions.namespaces("stream") == {"orders": 2, "refunds": 5}
    assert [(e.kind.value, e.position) for e in house.positions.history("stream")] == [
        ("commit", 4),
        ("commit", 5),
        ("rewind", 1),
        ("commit", 4),
        ("commit", 5),
    ]


# Forgetting


FORGET = AuditEntry("forget", "ann", "retired", 9)


def test_forgetting_removes_everything_but_what_people_did(house: PipelineWorld):
    writer = given_rewound(house, 1)
    house.positions.forget(house.state(writer), FORGET)
    assert {row.partition("/")[0] for row in house.rows(writer)} == {"audit"}
    assert [(deed.what, deed.who) for deed in house.positions.deeds("stream")] == [
        ("rewind", "ann"),
        ("forget", "ann"),
    ]


def test_a_forgotten_writer_is_not_registered(positions):
    positions.forget(positions.register("c0", {}), FORGET)
    assert positions.load("c0") is None


def test_a_writer_that_is_registered_again_begins_anew(house: PipelineWorld):
    writer = given_rewound(house, 1)
    house.positions.forget(house.state(writer), FORGET)
    house.register(writer)
    assert (house.position(writer), house.gate(writer), house.state(writer).lease) == (-1, None, None)
    assert (house.positions.namespaces("stream"), house.positions.history("stream")) == ({}, [])


def test_a_writer_that_is_registered_again_may_have_another_shape(positions):
    positions.forget(positions.register("c0", {"path": "/a"}), FORGET)
    assert positions.register("c0", {"path": "/b"}).shape == {"path": "/b"}


def test_what_was_acknowledged_is_forgotten_too(house: PipelineWorld):
    house.publish(orders="abc")
    writer = Stream(bad={0})
    house.deliver(writer)
    house.acknowledge(writer, 0)
    house.positions.forget(house.state(writer), FORGET)
    assert house.positions.acknowledged("stream") == frozenset()


def test_a_long_offset_log_is_forgotten_in_one_transaction_of_bounded_size(house: PipelineWorld, monkeypatch):
    house.publish_ids(10)
    writer = Stream()
    house.deliver(writer)
    sizes = []
    commit = house.consensus.commit

    def measured(key, expected, change):
        sizes.append((len(change.puts), len(change.deletes), len(change.ranges)))
        return commit(key, expected, change)

    monkeypatch.setattr(house.consensus, "commit", measured)
    house.positions.forget(house.state(writer), FORGET)
    assert sizes == [(1, 0, 2)]
    assert set(house.rows(writer)) == {f"audit/{house.consensus.read(_key(), []).version:020d}"}


def _key() -> ObjectKey:
    return ObjectKey(ObjectKind.WRITER, "orders/stream")


def test_an_acknowledgement_of_a_thousand_is_one_row_of_bounded_size(house):
    writer = Stream()
    state = house.positions.register(writer.name, {})
    house.positions.acknowledge(state, range(10**12, 10**12 + 1_000), "ann", None)
    (body,) = (body for row, body in house.rows(writer).items() if row.startswith("acknowledged/"))
    assert len(body) < 20_000
