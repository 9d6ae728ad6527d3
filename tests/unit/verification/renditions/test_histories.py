"""Any two histories of a collection: what is found is what a reader of both would see at some time."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.collection_rows import newest, row
from tests.support.memory_collection import PIECES, MemoryCollection, collection_writer

from tidemark.verification.renditions.collection import RangeComparison, Times
from tidemark.verification.renditions.matching import DifferenceTally, RuleMatcher

pytestmark = pytest.mark.unit

KEYS, LAST = "abc", 5


@dataclass(frozen=True)
class Said:
    """A message: a balance, or None for a delete."""

    key: str
    t: int
    balance: int | None


HISTORIES = st.lists(
    st.builds(Said, st.sampled_from(KEYS), st.integers(1, LAST), st.none() | st.integers(0, 1)), max_size=8
)


def stored(history):
    """The tables after a history: messages have ids in the order of their times."""
    tables = MemoryCollection()
    for id_, said in enumerate(sorted(history, key=lambda one: one.t)):
        values = None if said.balance is None else ("ann", said.balance)
        one = row(said.t, id_, (said.key,), values)
        tables.put((one.key, one.t, one.message_id), one.write_time, one)
    return tables


def visible(tables, key, t):
    """What a reader gets of a key at a time."""
    found = newest(tables.rows, t).get((key.encode(),))
    return None if found is None or found.gone else found.values


def told(old, new, first, last):
    """The keys and times at which something changes in one of the two and readers get different rows."""
    found = set()
    for key in KEYS:
        cell = (key.encode(),)
        times = {max(one.t, first) for side in (old, new) for one in side.rows if one.key == cell}
        found |= {(key, t) for t in times if t <= last and visible(old, key, t) != visible(new, key, t)}
    return found


@given(HISTORIES, HISTORIES, st.integers(0, LAST), st.integers(0, LAST))
def test_what_readers_of_both_would_see_is_found(one, other, first, length):
    old, new, last = stored(one), stored(other), min(first + length, LAST)
    writers = (collection_writer(tables) for tables in (old, new))
    ranges = RangeComparison(*writers, Times(first, last), RuleMatcher())
    tally = DifferenceTally.sum(ranges.compare(piece) for piece in range(PIECES))
    assert tally.total == tally.unexplained == len(told(old, new, first, last))
    digests = [ranges.digests(last, piece) for piece in range(PIECES)]
    is_same = all(visible(old, key, last) == visible(new, key, last) for key in KEYS)
    assert all(before == after for before, after in digests) == is_same
