"""Whatever happens while an entity is read, the answer is what the entity was at one moment since the call.

Or it is an error, and then only because something was deleted, purged or replicated meanwhile, and what was
handed out before is the beginning of such a moment's answer.
"""

import random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.support.memory_client import NO_CACHE, World

from tidemark.client.errors import ChangedWhileReading
from tidemark.client.tail.head_cache import CacheBounds
from tidemark.journal.action import Mark

pytestmark = pytest.mark.unit

KINDS = "aaaaggbdddpmj"


def word(kind: str, number: int, world: World) -> str:
    """The next action of the history: as a client would send it, or unrulier."""
    model = world.expected()
    reached = max(model.seq_nr or 0, model.delete_to, *model.events)
    match kind:
        case "a" | "g":
            first = reached + 1 + (number % 3 if kind == "g" else 0)
            return "A" + ",".join(str(n) for n in range(first, first + 1 + number % 4))
        case "b" if model.delete_to and len(model.events) == reached - model.delete_to:
            # A number that was deleted once. The head says then that it is the last one, and of what lies
            # behind a gap wider than a segment cannot be known any more.
            return f"A{1 + number % model.delete_to}"
        case "d":
            return f"D{1 + number % (reached + 2)}"
        case "p":
            return "P"
        case "j":
            return "j:A1"
    return "M"


actions = st.tuples(st.sampled_from(KINDS), st.integers(0, 11))
happenings = st.one_of(
    st.just(("nothing",)),
    st.just(("nothing",)),
    st.tuples(st.just("send"), actions),
    st.tuples(st.just("send"), actions),
    st.tuples(st.just("land"), st.integers(1, 4)),
    st.tuples(st.just("land"), st.integers(1, 4)),
    st.just(("land", 99)),
    st.just(("run",)),
)


def happen(world: World, happening: tuple, order: random.Random) -> None:
    match happening:
        case ("send", (kind, number)):
            world.send_words(word(kind, number, world))
        case ("land", writes):
            world.land(min(writes, len(world.pending)))
        case ("run",) if not world.pending:
            world.begin_run(order=order)


@settings(max_examples=250, deadline=None)
@given(
    before=st.lists(actions, max_size=8),
    complete=st.integers(0, 8),
    landed=st.integers(0, 12),
    meanwhile=st.lists(happenings, max_size=24),
    segment_size=st.sampled_from([2, 3, 10]),
    page_size=st.sampled_from([1, 2, 5]),
    first=st.sampled_from([1, 1, 1, 2, 5]),
    seed=st.integers(0, 3),
    bounds=st.sampled_from([NO_CACHE, CacheBounds(), CacheBounds(10**6, 2)]),
    known=st.integers(0, 8),
    is_head_late=st.booleans(),
)
def test_an_answer_is_of_one_moment(
    before, complete, landed, meanwhile, segment_size, page_size, first, seed, bounds, known, is_head_late
) -> None:
    world, order = World("", segment_size, page_size), random.Random(seed)
    world.is_head_late = is_head_late
    client = world.client(bounds)
    for place, (kind, number) in enumerate(before):
        if place == known:
            client.pointer("k")  # what the tail has by now is kept
        world.send_words(word(kind, number, world))
    world.replicate(min(complete, len(world.records)))
    world.begin_run(order=order)
    world.land(min(landed, len(world.pending)))
    began = len(world.records)
    waiting = list(meanwhile)
    world.on_tick = lambda tick: happen(world, waiting.pop(0), order) if waiting else None
    found, raised = [], None
    try:
        for one in client.read("k", first):
            found.append((one.seq_nr, one.offset))
    except ChangedWhileReading as error:
        raised = error
    world.on_tick = lambda tick: None
    moments = [world.expected(end).read(first) for end in range(began, len(world.records) + 1)]
    if raised is None:
        assert found in moments
        event("whole")
    else:
        assert any(found == moment[: len(found)] for moment in moments)
        sent = [a for a in map(world.action, range(began, len(world.records))) if not isinstance(a, Mark)]
        if not found:
            # A run between head and pointer, and a delete where numbers went back: only the pointer tells
            # what was deleted, so nothing is handed out until the run has written it.
            assert world.pending, "nothing was handed out, so the read could have begun anew"
            event("under way")
            return
        assert sent, "nothing has happened"
        event("changed")


def given_replicated(history: str, **sizes: int) -> World:
    world = World(history, **sizes)
    world.replicate()
    return world


def at(world: World, asked: str, times: int, do) -> None:
    """Let something happen when the reader asks this for the nth time."""

    def on_tick(_: int) -> None:
        if world.asked.count(asked) == times and world.asked[-1] == asked:
            do()

    world.on_tick = on_tick


def replicates(world: World, words: str):
    def do() -> None:
        world.send_words(words)
        world.replicate()

    return do


def test_a_delete_between_two_pages_does_not_leave_a_hole() -> None:
    world = given_replicated("A1,2,3,4,5,6", page_size=2)
    at(world, "rows", 2, replicates(world, "D4"))
    events = world.client().read("k")
    assert [next(events).seq_nr for _ in range(2)] == [1, 2]
    with pytest.raises(ChangedWhileReading) as raised:
        next(events)
    assert (raised.value.key, raised.value.expected) == ("k", 3)


def test_a_purge_between_two_pages_does_not_look_like_the_end() -> None:
    world = given_replicated("A1,2,3,4,5,6", page_size=2)
    at(world, "rows", 2, replicates(world, "P"))
    events = world.client().read("k")
    assert [next(events).seq_nr for _ in range(2)] == [1, 2]
    with pytest.raises(ChangedWhileReading):
        next(events)


def test_a_purge_before_the_tail_does_not_look_like_a_gap() -> None:
    world = given_replicated("A1,2,3,4,5,6", page_size=2)
    world.send_words("A7")
    at(world, "rows", 2, replicates(world, "P"))
    events = world.client().read("k")
    assert [next(events).seq_nr for _ in range(2)] == [1, 2]
    with pytest.raises(ChangedWhileReading):
        next(events)


def test_a_purge_before_the_head_is_read_does_not_look_like_a_new_entity() -> None:
    world = given_replicated("A1,2,3")
    world.send_words("A4")
    at(world, "head", 1, replicates(world, "P"))
    assert world.read() == []


@pytest.mark.parametrize("words", ["D4", "P", "P A1,2"])
def test_what_changes_before_the_first_event_is_read_anew(words: str) -> None:
    world = given_replicated("A1,2,3,4,5,6", page_size=2)
    at(world, "rows", 1, replicates(world, words))
    assert world.read() == world.expected().read()


def test_what_is_appended_after_the_mark_is_no_part_of_the_answer() -> None:
    world = given_replicated("A1,2")
    at(world, "head", 1, replicates(world, "A3"))
    at(world, "pointer", 1, replicates(world, "j:A1"))
    assert world.read() == [(1, 0), (2, 0)]


def test_a_replication_that_passes_the_mark_is_as_good_as_the_mark() -> None:
    world = given_replicated("A1,2")
    at(world, "pointer", 1, replicates(world, "A3 D1"))
    assert world.read() == world.expected().read()


def test_rows_that_came_out_of_order_leave_no_hole() -> None:
    """Of a run under way only the row of event 4 is there."""
    world = given_replicated("A1")
    world.send_words("A2 A3 A4")
    world.begin_run()
    world.pending.insert(0, world.pending.pop(2))
    world.land(1)
    assert world.read() == [(1, 0), (2, 1), (3, 2), (4, 3)]


def test_rows_of_the_future_leave_no_hole() -> None:
    """Both were appended after the mark, and the second one was written first."""
    world = given_replicated("A1")

    def happens() -> None:
        world.send_words("A2 A3")
        world.begin_run()
        world.pending.insert(0, world.pending.pop(1))
        world.land(1)

    at(world, "head", 1, happens)
    assert world.read() == [(1, 0)]


def test_an_entity_that_never_rests_is_given_up_on() -> None:
    world = given_replicated("A1,2,3,4,5,6", page_size=2)
    world.on_tick = lambda tick: replicates(world, "D1 A7 P A1,2,3")() if world.asked[-1] == "rows" else None
    with pytest.raises(ChangedWhileReading, match="Read again"):
        world.read()
