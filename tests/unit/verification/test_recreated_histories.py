"""Whatever people delete and make again between runs, no run is green over a difference.

Topics, targets, folders, files and tables; runs that die on the way; and what people then do: accept, resume,
rewind, open a gate. After every run that is green and leaves no lag, everything must be where it should be.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from tests.support.recreated_world import ARCHIVE, SOURCES, TARGET, World

from tidemark.delivery import target
from tidemark.delivery.target import TargetVerdict

pytestmark = pytest.mark.unit

NAMES = st.sampled_from(SOURCES)
WRITERS = st.sampled_from([TARGET, ARCHIVE, "journal"])
NUMBERS, PARTITIONS = st.integers(0, 3), st.integers(1, 3)


def step(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.just(name), *arguments)


PRODUCE = step("produce", NAMES, st.text("abc", min_size=1, max_size=5))
RUN = step("run")
DYING = step("run", st.sampled_from(["bind", "publish", "deliver"]))
BREAK = st.one_of(
    step("recreate", NAMES, PARTITIONS),
    step("recreate", st.just(TARGET), PARTITIONS),
    step("delete", st.sampled_from([*SOURCES, TARGET])),
    step("remove_file", NUMBERS),
    step("damage_file", NUMBERS),
    step("remove_folder"),
    step("drop_tables"),
)
PEOPLE = st.one_of(
    step("accept"),
    step("resume_stopped", WRITERS),
    step("rewind_to_the_beginning", st.sampled_from([TARGET, ARCHIVE])),
    step("open", WRITERS),
    step("move_damaged"),
)
ROUND = st.tuples(
    PRODUCE, st.one_of(RUN, DYING), BREAK, st.one_of(PRODUCE, BREAK, DYING), RUN, PEOPLE, PEOPLE, RUN
)
HISTORIES = st.lists(ROUND, min_size=1, max_size=3).map(
    lambda rounds: [one for each in rounds for one in each]
)


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(history=HISTORIES)
def test_no_run_is_green_over_a_difference(history: Sequence[tuple[Any, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), patch)
        for name, *arguments in [*history, ("run",)]:
            note(f"{name} {arguments}")
            getattr(world, name)(*arguments)
            if name == "run" and world.seems_well():
                assert list(world.differences()) == []


def test_a_green_run_over_a_difference_would_be_noticed(tmp_path: Path) -> None:
    """The check itself: with a target that is never asked for its id, and output that is never compared."""
    with pytest.MonkeyPatch.context() as patch:
        world = World(tmp_path, patch)
        patch.setattr(target, "compare", lambda state, present: TargetVerdict.SAME)
        patch.setattr(world, "reconcile", lambda writer, before: None)
        for name, *arguments in (
            ("produce", "orders", "abc"),
            ("run",),
            ("recreate", TARGET, 2),
            ("remove_folder",),
            ("produce", "orders", "abc"),
            ("run",),
        ):
            getattr(world, name)(*arguments)
    assert world.seems_well()
    assert [one.split()[0] for one in world.differences()] == [TARGET, ARCHIVE]
