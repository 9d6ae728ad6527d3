"""After old versions were removed, every time that is still readable is as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.reading_world import ReadingWorld, balances, emitted

from tidemark.outputs.reader_errors import Forgotten

pytestmark = pytest.mark.unit

KEYS = ("ann", "bob", "cid")
Balances = st.dictionaries(st.sampled_from(KEYS), st.none() | st.integers(0, 2), max_size=3)
Histories = st.lists(Balances, min_size=1, max_size=7)


def read(world: ReadingWorld, since: int) -> dict[str, object]:
    """All that readers get from a time on."""
    with world.collection() as reader:
        end = reader.frontier
        return {
            "rows": {t: balances(reader.rows(t)) for t in range(since, end)},
            "keys": {(t, key): reader.get({"id": key}, at=t) for t in range(since, end) for key in KEYS},
            "changes": {
                t: {at: sorted(one) for at, one in emitted(reader.changes(after=t, timeout=0)).items()}
                for t in range(since, end, 3)
            },  # those at one time have no order
        }


@given(history=Histories, later=Histories, cuts=st.lists(st.integers(0, 150), min_size=1, max_size=3))
def test_no_readable_time_changes_also_not_through_a_handover(history, later, cuts):
    # Given: a history of one rendition, a handover to another one that has other rows, and more of both.
    world = ReadingWorld()
    for number, accounts in enumerate(history):
        world.step(10 * (number + 1), accounts)
    doubled = {
        t: {key: one and one * 2 for key, one in accounts.items()} for t, accounts in world.written[1].items()
    }
    world.build_second(doubled)
    h = world.hand_over(2)
    for number, accounts in enumerate(later):
        world.step(h + 10 * number + 5, accounts, accounts)

    for cut in cuts:
        # When: versions before a time are removed.
        since = max(world.readers.load().since, min(cut, world.output.frontier - 1))
        before = read(world, since)
        assert world.trim(cut) == since

        # Then: readers get what they got before, and what they get is what was written.
        assert read(world, since) == before
        assert before["rows"] == {t: world.true_balances(t) for t in range(since, world.output.frontier)}


def test_a_reader_keeps_its_time_and_later_ones_are_refused_older_ones():
    world = ReadingWorld()
    for number in range(5):
        world.step(10 * (number + 1), {"ann": number})
    with world.collection() as reader:
        reader.hold(20)
        assert world.trim(40) == 19
        assert reader.get({"id": "ann"}, at=20) == {"id": "ann", "owner": "Ann", "balance": 1}
        assert emitted(reader.changes(after=19, until=20, timeout=0)) == {20: [("ann=0", -1), ("ann=1", 1)]}
    assert world.trim(40) == 40
    with world.collection() as reader, pytest.raises(Forgotten):
        reader.get({"id": "ann"}, at=39)


def test_only_what_no_readable_time_sees_is_removed():
    world = ReadingWorld()
    world.step(10, {"ann": 1, "bob": 1})
    world.step(20, {"ann": 2, "bob": None})
    world.step(30, {"ann": 3})
    world.trim(25)
    there = [(one.t, one.gone) for one in world.renditions.rows_of(world.output.active).there]
    # A key that is gone keeps the row that says so: it names the partition that the key belongs to.
    assert there == [(20, False), (20, True), (30, False)]
