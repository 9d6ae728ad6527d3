"""Every history, however far its replication is: the answer is the history's, from every number on."""

import pytest
from tests.support.memory_client import World

from tidemark.client import reader

pytestmark = pytest.mark.unit

HISTORIES = [
    "",
    "M",
    "A1",
    "A1,2,3",
    "A1 A2 A3",
    "A1,2 A3 A4,5",
    "M A1 M A2 M",
    "A5,6 A7",
    "A1 A3 A7",
    "A1 - N A2 -",
    "A1,2,3 D2",
    "A1 A2 A3 D2",
    "A1,2,3 D3",
    "A1 D1",
    "A1,2,3 D9",
    "A1 D1 A2",
    "A1,2 D2 A3,4 D3 A5",
    "A1 A2 D1 D2 A3",
    "A1,2,3 D2 D1 A4",
    "A1 M D1 M A2 M D2 M",
    "P",
    "A1 P",
    "A1,2 P A1",
    "A1 P A5,6",
    "P A1,2",
    "A1,2,3 P A1 A2 D1",
    "A1 A2 P A1 P A1,2,3",
    "A1,2 D2 P A1 D1 A2",
    "A1,2 D1 A3 P",
    "A1,2 P D2",
    "A1,2 P D2 A3",
    "D3",
    "D3 A4",
    "A1,2 P D3 D5 A2,3,4",
    "A1,2,3 D9 A4,5",
    "A1,2,3,4 D2 A2",
    "j:A1 A1 j:A2 j:P A2 j:A1 D1",
    "A1,2,3,4,5,6,7 D3 A8,9,10 D8 A11",
]
STAGES = ["row", "head", "pointer", "nothing"]
"""What the run under way is about to write next: everything before it has landed."""


@pytest.mark.parametrize("segment_size", [2, 10])
@pytest.mark.parametrize("history", HISTORIES)
def test_the_answer_is_the_historys_however_far_replication_is(history: str, segment_size: int) -> None:
    """A run may be under way over anything, and be about to write anything."""
    words = len(history.split())
    for complete in range(words + 1):
        for under_way in range(complete, words + 1):
            for stage in STAGES if under_way > complete else STAGES[:1]:
                world = World(history, segment_size)
                world.replicate(complete)
                world.begin_run(under_way)
                world.land_until(stage)
                expected = world.expected()
                for first in {1, *range(3, 1 + (expected.seq_nr or 0), 3), 2 + (expected.seq_nr or 0)}:
                    told = (complete, under_way, stage, first)
                    assert (told, world.read(first)) == (told, expected.read(first))


@pytest.mark.parametrize("history", HISTORIES)
def test_the_pointer_is_the_historys_however_far_replication_is(history: str) -> None:
    for complete in range(len(history.split()) + 1):
        for stage in STAGES:
            world = World(history)
            world.replicate(complete)
            world.begin_run()
            world.land_until(stage)
            found = world.client().pointer("k")
            assert (complete, stage, found) == (complete, stage, world.expected().seq_nr)


@pytest.mark.parametrize("history", HISTORIES)
def test_a_tail_too_large_to_be_kept_is_read_a_second_time(
    history: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "KEPT_BYTES", 600)
    for complete in range(len(history.split()) + 1):
        world = World(history)
        world.replicate(complete)
        assert (complete, world.read()) == (complete, world.expected().read())
