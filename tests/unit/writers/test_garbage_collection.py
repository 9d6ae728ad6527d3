"""Python's search for cycles while a journal is written."""

import gc

import pytest

from tidemark.writers.garbage_collection import NEW_OBJECTS, seldom_collecting

pytestmark = pytest.mark.unit


class Cycle:
    """Something that only a search can free."""

    alive = 0

    def __init__(self) -> None:
        Cycle.alive += 1
        self.me = self

    def __del__(self) -> None:
        Cycle.alive -= 1


def test_everything_is_as_before_when_the_block_ends():
    before = gc.get_threshold()
    with seldom_collecting():
        assert gc.get_threshold() != before
    assert gc.get_threshold() == before


def test_everything_is_as_before_when_the_block_fails():
    before = gc.get_threshold()
    with pytest.raises(LookupError), seldom_collecting():
        raise LookupError
    assert gc.get_threshold() == before


def test_new_cycles_are_found_all_the_same():
    with seldom_collecting():
        for _ in range(2 * NEW_OBJECTS):
            Cycle()
        assert Cycle.alive <= NEW_OBJECTS
    gc.collect()
