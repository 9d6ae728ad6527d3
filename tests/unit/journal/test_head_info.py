"""What a tail's headers amount to, and what that hides of an entity."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.journal.action import Action, Delete, Mark, Purge
from tidemark.journal.action import append as append_of
from tidemark.journal.effect import Message
from tidemark.journal.events import EncodedEvent, Events
from tidemark.journal.fold import fold
from tidemark.journal.head import Head
from tidemark.journal.head_info import (
    EMPTY,
    PURGED,
    Appended,
    Deleted,
    HeadInfo,
    head_info,
    hidden_to,
    last_seq_nr,
    needs_tables,
)

pytestmark = pytest.mark.unit


def actions(history: str) -> list[tuple[int, Action]]:
    """``A1-3 D2 P M``, at offsets from 0 on."""
    return [(offset, action(word)) for offset, word in enumerate(history.split())]


def action(word: str) -> Action:
    match word[0]:
        case "A":
            first, _, last = word[1:].partition("-")
            numbers = range(int(first), int(last or first) + 1)
            return append_of("k", 0, Events(tuple(EncodedEvent(number) for number in numbers)))
        case "D":
            return Delete("k", 0, int(word[1:]))
        case "P":
            return Purge("k", 0)
    return Mark("k", 0, "m")


def head(seq_nr: int, delete_to: int | None = None, offset: int = -1) -> Head:
    return Head(0, 0, offset, 10_000, seq_nr, delete_to, 0, 0)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ("", EMPTY),
        ("M M", EMPTY),
        ("A1-2", Appended(0, 1, 2)),
        ("D10", Deleted(10, 10)),
        ("P", PURGED),
        ("A1 A2-3", Appended(0, 1, 3)),
        ("M A1 M A2", Appended(1, 1, 2)),
        ("A1-3 D2", Appended(0, 1, 3, delete_to=2, is_deleted_last=True)),
        ("A1-3 D9", Appended(0, 1, 3, delete_to=3, is_deleted_last=True)),
        ("A1-3 D2 D1", Appended(0, 1, 3, delete_to=2, is_deleted_last=True)),
        ("A1-3 D3 A4", Appended(0, 1, 4, delete_to=3)),
        ("D5 D7", Deleted(7, 5)),
        ("D7 D5", Deleted(7, 7)),
        ("D5 A6-7", Appended(1, 6, 7, before=Deleted(5, 5))),
        ("D5 A6 D6", Appended(1, 6, 6, delete_to=6, before=Deleted(5, 5), is_deleted_last=True)),
        ("A4 A2 A3", Appended(0, 4, 3, below=2, is_ordered=False)),
        ("A1-2 A2", Appended(0, 1, 2, is_ordered=False)),
        ("A2 A2 P A2", Appended(3, 2, 2, is_new=True)),
        ("A1 P", PURGED),
        ("D1 P", PURGED),
        ("P P M", PURGED),
        ("A1 P A1-2", Appended(2, 1, 2, is_new=True)),
        ("P D3", Deleted(3, 3, is_new=True)),
        ("P D3 A4", Appended(2, 4, 4, before=Deleted(3, 3, is_new=True), is_new=True)),
        ("P A1 D1 P A5", Appended(4, 5, 5, is_new=True)),
    ],
)
def test_folding_a_tail(history: str, expected: HeadInfo) -> None:
    assert head_info(actions(history)) == expected


@pytest.mark.parametrize(
    ("history", "onto", "hidden"),
    [
        ("", None, 0),
        ("", head(5), 0),
        ("", head(5, 3), 3),
        ("D2", head(5), 2),
        ("D2", head(5, 3), 3),
        ("D9", head(5), 5),
        ("D9 A6", head(5), 5),
        ("D2 A6-8 D7", head(5), 7),
        ("A6-8 D2", head(5), 2),
        ("A5-6", None, 4),
        ("D3", None, 3),
        ("D3 A4", None, 3),
        ("P", head(5, 3), 0),
        ("P A1-2", head(5, 3), 0),
        ("P A1-2 D1", head(5, 3), 1),
        ("P D4 A5", head(9, 8), 4),
    ],
)
def test_what_is_hidden_of_an_entity(history: str, onto: Head | None, hidden: int) -> None:
    assert hidden_to(head_info(actions(history)), onto) == hidden


def test_a_delete_that_the_head_has_already_is_not_counted_by_what_came_after_it() -> None:
    """Head 5; a delete beyond it, then 6 to 8: both are in the head, which had only 5 to delete."""
    assert hidden_to(head_info(actions("D99 A6-8")), head(8, 5, offset=1)) == 5


@pytest.mark.parametrize(
    ("history", "onto", "expected"),
    [
        ("", None, None),
        ("M", head(5, 5), 5),
        ("D2", head(5), 5),
        ("D2", None, 2),
        ("A6-7", head(5), 7),
        ("A6-7 D7", head(5), 7),
        ("P", head(5), None),
        ("P D3", head(5), 3),
        ("P A1", head(5), 1),
    ],
)
def test_the_last_number(history: str, onto: Head | None, expected: int | None) -> None:
    assert last_seq_nr(head_info(actions(history)), onto) == expected


@pytest.mark.parametrize(
    ("history", "needed"), [("", True), ("D1", True), ("A1", True), ("P", False), ("P A1", False)]
)
def test_behind_a_purge_the_tables_are_not_needed(history: str, needed: bool) -> None:
    assert needs_tables(head_info(actions(history))) is needed


words = st.one_of(
    st.builds(lambda first, more: f"A{first}-{first + more}", st.integers(1, 12), st.integers(0, 3)),
    st.builds(lambda to: f"D{to}", st.integers(1, 14)),
    st.sampled_from(["P", "M"]),
)


@given(st.lists(words, max_size=10), st.data())
def test_it_hides_what_replication_would_hide_wherever_the_head_is(
    history: list[str], data: st.DataObject
) -> None:
    """Histories of any kind, also those that no client sends."""
    messages = [Message(offset, 0, offset, offset + 1, 0, act) for offset, act in actions(" ".join(history))]
    pointer = data.draw(st.integers(0, len(history)), "how many the pointer has")
    ahead = data.draw(st.integers(pointer, len(history)), "how many the head has")
    onto = fold("t", "k", None, messages[:ahead]).head
    info = head_info((message.offset, message.action) for message in messages[pointer:])
    after = fold("t", "k", None, messages).head
    if after is None:
        assert info == PURGED or (info == EMPTY and onto is None)
    else:
        assert hidden_to(info, onto) == (after.delete_to or 0)
