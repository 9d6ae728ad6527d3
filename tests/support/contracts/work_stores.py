"""What every store of hints, dead letters and history promises.

A subclass named ``Test…`` gives the fixture ``stores``; every test has a journal of its own name.
"""

from dataclasses import replace
from uuid import uuid4

import pytest
from tests.support.clocks import MORNING
from tests.support.contracts.work_world import Stores

from tidemark.work.model.entry import DeadEntry, DeathReason, Ending, Hint, KeptLetter, Request, Run, Seen
from tidemark.work.store.due import BEGINNING, Archive, place_of

LATER = MORNING + 10_000_000
DAY = 86_400_000


def given_hint(due_at: int, name: str = "a", priority: int = 180, bucket: str = "2026-11-17T10") -> Hint:
    return Hint(name, f"key of {name}", bucket, 0, priority, due_at - 1, due_at, MORNING)


LETTER = DeadEntry(
    key="page/42",
    reason=DeathReason.FAILURES,
    request=Request(1, 2, 3, 4, 5, "größer 𝄞", 6),
    timeouts=1,
    total_timeouts=2,
    failures=3,
    error='it\'s "wrong"\n',
    owner="w1",
    started=MORNING,
    died=MORNING + 5,
    version=7,
)
RUN = Run("page/42", "w1", "token", MORNING, MORNING + 50, Ending.DONE, None, 3)
LANE = ("2026-11-17T10", 0, 180)


SEEN = Seen("ann", MORNING + 60_000, "the route was gone")


def letters_of(archive: Archive, *days: str) -> list[DeadEntry]:
    return [kept.letter for kept in archive.letters(days)]


class StoreContract:
    """``Due`` and ``Archive``."""

    @pytest.fixture
    def name(self) -> str:
        return f"j{uuid4().hex[:12]}"

    def test_hints_come_in_order_of_their_time(self, stores: Stores, name: str):
        due = stores.due(name)
        hints = [given_hint(MORNING + 5, "c"), given_hint(MORNING + 5, "b"), given_hint(MORNING + 1, "z")]
        for hint in hints:
            due.put(hint)
        assert list(due.page(LANE, BEGINNING, LATER, 10)) == [hints[2], hints[1], hints[0]]

    def test_a_page_goes_on_behind_a_place(self, stores: Stores, name: str):
        due = stores.due(name)
        hints = [given_hint(MORNING + place // 2, f"h{place}") for place in range(6)]
        for hint in hints:
            due.put(hint)
        found, after = [], BEGINNING
        while page := due.page(LANE, after, LATER, 2):
            found += page
            after = place_of(page[-1])
        assert found == hints

    def test_hints_of_the_future_are_left_out(self, stores: Stores, name: str):
        due = stores.due(name)
        due.put(given_hint(MORNING, "a"))
        due.put(given_hint(MORNING + 1, "b"))
        assert [hint.id for hint in due.page(LANE, BEGINNING, MORNING, 10)] == ["a"]

    def test_priorities_in_use_are_known(self, stores: Stores, name: str):
        due = stores.due(name)
        for priority in (200, 0, 20, 20):
            due.put(given_hint(MORNING, f"p{priority}", priority))
        assert list(due.priorities("2026-11-17T10", 0)) == [0, 20, 200]
        assert list(due.priorities("2026-11-17T10", 1)) == []

    def test_writing_a_hint_again_changes_nothing(self, stores: Stores, name: str):
        due = stores.due(name)
        due.put(given_hint(MORNING))
        due.put(given_hint(MORNING))
        assert len(due.page(LANE, BEGINNING, LATER, 10)) == 1

    def test_a_bucket_goes_as_a_whole_and_alone(self, stores: Stores, name: str):
        due = stores.due(name)
        gone, kept = given_hint(MORNING), given_hint(MORNING, bucket="2026-11-17T11")
        due.put(gone)
        due.put(kept)
        due.dispose("2026-11-17T10", [0], MORNING + 1)
        assert (due.holds(gone), due.holds(kept)) == (False, True)
        assert list(due.priorities("2026-11-17T10", 0)) == []

    def test_journals_do_not_see_each_other_s_hints(self, stores: Stores, name: str):
        stores.due(name).put(given_hint(MORNING))
        assert list(stores.due(f"{name}2").page(LANE, BEGINNING, LATER, 10)) == []

    def test_a_dead_letter_is_kept_as_it_is(self, stores: Stores, name: str):
        archive = stores.archive(name)
        archive.bury(LETTER)
        archive.bury(LETTER)
        assert letters_of(archive, "2026-11-17") == [LETTER]
        assert letters_of(archive, "2026-11-18") == []

    def test_a_dead_letter_is_found_by_the_day_it_died(self, stores: Stores, name: str):
        archive = stores.archive(name)
        letter = replace(LETTER, died=MORNING + 5 * DAY)
        archive.bury(letter)
        assert letters_of(archive, "2026-11-22") == [letter]
        assert letters_of(archive, "2026-11-17") == []

    def test_a_dead_letter_that_was_written_again_on_another_day_is_one(self, stores: Stores, name: str):
        archive = stores.archive(name)
        again = replace(LETTER, died=MORNING + DAY)
        for letter in (LETTER, again):
            archive.bury(letter)
        days = ["2026-11-18", "2026-11-17"]
        assert letters_of(archive, *days) == [again]
        archive.dig_up(again, MORNING + DAY + 1)
        assert letters_of(archive, *days) == []

    def test_dead_letters_come_newest_first_until_they_are_dug_up(self, stores: Stores, name: str):
        archive = stores.archive(name)
        newer = replace(LETTER, started=MORNING + 1000)
        for letter in (LETTER, newer):
            archive.bury(letter)
        assert letters_of(archive, "2026-11-17") == [newer, LETTER]
        archive.dig_up(newer, MORNING + 5000)
        archive.bury(newer)
        assert letters_of(archive, "2026-11-17") == [LETTER]

    def test_a_dead_letter_stays_and_keeps_who_looked_at_it(self, stores: Stores, name: str):
        archive = stores.archive(name)
        archive.bury(LETTER)
        assert [kept.seen for kept in archive.letters(["2026-11-17"])] == [None]
        archive.see(LETTER, SEEN)
        archive.see(LETTER, SEEN)
        archive.bury(LETTER)
        assert list(archive.letters(["2026-11-17"])) == [KeptLetter(LETTER, SEEN)]

    def test_the_last_word_about_a_claim_is_its_history(self, stores: Stores, name: str):
        archive = stores.archive(name)
        archive.record(RUN)
        lapsed = replace(RUN, ending=Ending.LAPSED, ended=RUN.ended + 1, version=4)
        archive.record(lapsed)
        archive.record(RUN)
        assert list(archive.runs(["2026-11-17"])) == [lapsed]

    def test_a_run_is_found_once_by_the_day_it_ended(self, stores: Stores, name: str):
        archive = stores.archive(name)
        archive.record(RUN)
        later = replace(RUN, ending=Ending.LAPSED, ended=RUN.ended + DAY, version=4)
        archive.record(later)
        assert list(archive.runs(["2026-11-18", "2026-11-17"])) == [later]
