"""Two replicators in turn leave what one would have: however far the other came, and wherever it died.

Ours delivers a beginning and hands back; the other goes on from the pointers with times of its own, and may
die between any two writes; then ours takes over. What ours bound before the other wrote has older times.
"""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.journal_samples import DAY, TOPIC, ActionLog, JournalWorld

from tidemark.journal_tables.statements import Pointer
from tidemark.log.model.binding import TopicPartition
from tidemark.writers.replicator.take_back import objection_to

pytestmark = pytest.mark.unit

KEYS = ("k", "j")
PLACE: TopicPartition = (TOPIC, 0)
BEFORE, DURING, LATER = 2 * DAY, 3 * DAY, 4 * DAY
"""When ours binds ahead, when the other writes, and when ours goes on."""


@dataclass(frozen=True)
class Story:
    """A history, and where it is cut."""

    words: list[str]
    ours: int
    """So many are delivered before the hand-back."""
    theirs: int
    """So many are in the tables when the other stops, with its pointer."""
    begun: int
    """So many the other has begun to write beyond them."""
    writes: int
    """After so many writes of those it dies."""
    ahead: int
    """So many ours has bound before the other wrote anything."""


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Appends, deletes and purges of two entities as a producer sends them."""
    last, words = dict.fromkeys(KEYS, 0), list[str]()
    for _ in range(draw(st.integers(3, 14))):
        key = draw(st.sampled_from(KEYS))
        kind = draw(st.sampled_from("AAAADP")) if last[key] else "A"
        if kind == "A":
            last[key] += 1
            words.append(f"{key}:A{last[key]}")
        elif kind == "D":
            words.append(f"{key}:D{draw(st.integers(1, last[key]))}")
        else:
            last[key] = 0
            words.append(f"{key}:P")
    ours = draw(st.integers(1, len(words) - 1))
    theirs = draw(st.integers(ours, len(words)))
    begun = draw(st.integers(theirs, len(words)))
    return Story(words, ours, theirs, begun, draw(st.integers(0, 6)), draw(st.integers(ours, len(words))))


def written_once(words: list[str]) -> dict[str, object]:
    house = JournalWorld(ActionLog())
    house.actions.publish(" ".join(words))
    house.go("in bulk")
    return house.told(*KEYS)


def run_theirs(house: JournalWorld, story: Story) -> None:
    """The other replicator, on the same tables."""
    other = JournalWorld(ActionLog(begins_at=story.ours, times=[DURING, DURING + DAY // 2]))
    other.journal = house.journal
    if story.theirs > story.ours:
        other.actions.publish(" ".join(story.words[story.ours : story.theirs]))
        other.go("in bulk")
    if story.begun > story.theirs:
        other.actions.begins_at = story.theirs
        other.actions.publish(" ".join(story.words[story.theirs : story.begun]))
        other.killed("in bulk", story.writes)


def take_over(house: JournalWorld, bound: int) -> str | None:
    """The take-over's own rule, and what it makes durable."""
    offset = house.journal.pointers[PLACE]
    problem = objection_to({PLACE: bound}, {PLACE: Pointer(offset, DURING)}, LATER)
    if problem is None:
        state = replace(house.state(house.process), theirs={PLACE: offset})
        house.positions.commit(state, state.position, None, None)
    return problem


@settings(max_examples=120, deadline=None)
@given(stories())
def test_i18_what_two_replicators_wrote_in_turn_is_what_one_would_have_written(story):
    """Item 18: nothing of either is hidden by the other, and nothing is written twice or left out."""
    house = JournalWorld(ActionLog(times=[DAY, *([BEFORE] if story.ahead > story.ours else []), LATER]))
    house.actions.publish(" ".join(story.words[: story.ours]))
    house.go("in bulk")
    if story.ahead > story.ours:
        house.actions.publish(" ".join(story.words[story.ours : story.ahead]))
    run_theirs(house, story)

    refused = take_over(house, bound=story.ahead)

    assert (refused is not None) == (house.journal.pointers[PLACE] < story.ahead - 1)
    if refused:
        return
    if story.ahead < len(story.words):
        house.actions.publish(" ".join(story.words[story.ahead :]))
    house.go("in bulk")
    assert (house.gate(house.process), house.position(house.process)) == (None, len(story.words) - 1)
    assert house.told(*KEYS) == written_once(story.words)


@settings(max_examples=60, deadline=None)
@given(stories())
def test_i18_without_a_take_over_no_binding_passes_what_the_other_wrote(story):
    """Item 18: the next binding reaches past the other's pointers, and nothing was ever handed back."""
    house = JournalWorld(ActionLog(times=[DAY, DAY + DAY // 2, LATER]))
    house.actions.publish(" ".join(story.words[: story.ours]))
    house.go("in bulk")
    run_theirs(house, story)
    moved = house.journal.pointers[PLACE] >= story.ours
    house.actions.publish(" ".join(story.words[story.ours :]))
    house.go("in bulk")
    gate = house.gate(house.process)
    assert (gate is not None) == moved
    if gate:
        assert "changed under us" in gate.reason
