"""What every implementation of ``Consensus`` promises.

A subclass named ``Test…`` gives the fixture ``consensus``; every test uses objects with names of its own, so
that a real database can be shared and needs no cleaning between tests.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import uuid4

import pytest

from tidemark.consensus.objects import (
    ABSENT,
    AFTER_EVERY_NAME,
    Change,
    Consensus,
    ObjectKey,
    ObjectKind,
    Outpaced,
    RowRange,
    Snapshot,
)
from tidemark.errors import TidemarkError

RACERS = 8


class ConsensusContract:
    """Compare-and-set on versioned objects."""

    @pytest.fixture
    def key(self) -> ObjectKey:
        return given_key()

    # Versions

    def test_an_object_that_was_never_written_is_absent(self, consensus: Consensus, key: ObjectKey):
        snapshot = consensus.read(key, ["head"])
        assert (snapshot.version, dict(snapshot.rows)) == (ABSENT, {})

    def test_absent_is_version_0(self):
        assert ABSENT == 0

    def test_the_first_commit_creates_version_1(self, consensus: Consensus, key: ObjectKey):
        assert consensus.commit(key, ABSENT, Change({"head": "a"})) == 1
        snapshot = consensus.read(key, ["head"])
        assert (snapshot.version, dict(snapshot.rows)) == (1, {"head": "a"})

    def test_every_commit_adds_1_to_the_version(self, consensus: Consensus, key: ObjectKey):
        versions = [consensus.commit(key, expected, Change({"head": str(expected)})) for expected in range(3)]
        assert versions == [1, 2, 3]

    def test_a_commit_that_changes_no_row_still_makes_a_version(self, consensus: Consensus, key: ObjectKey):
        assert consensus.commit(key, ABSENT, Change()) == 1
        assert consensus.read(key, ["head"]).version == 1

    def test_an_object_without_rows_keeps_its_version(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"head": "a"}))
        consensus.commit(key, 1, Change(deletes=["head"]))
        snapshot = consensus.read(key, ["head"])
        assert (snapshot.version, dict(snapshot.rows)) == (2, {})

    # Several at once

    def test_several_objects_are_read_at_once(self, consensus: Consensus):
        one, emptied, absent = given_key(), given_key(), given_key()
        consensus.commit(one, ABSENT, Change({"a": "1", "b": "2"}))
        consensus.commit(emptied, ABSENT, Change({"a": "1"}))
        consensus.commit(emptied, 1, Change(deletes=["a"]))
        found = consensus.recent(one.kind, [one.name, emptied.name, absent.name])
        assert found == {one.name: Snapshot(1, {"a": "1", "b": "2"}), emptied.name: Snapshot(2, {})}

    def test_rows_that_were_committed_are_seen_by_those_who_ask_afterwards(
        self, consensus: Consensus, key: ObjectKey
    ):
        assert consensus.committed(key, ["a"]) == Snapshot(ABSENT, {})
        consensus.commit(key, ABSENT, Change({"a": "1", "b": "2"}))
        assert consensus.committed(key, ["a", "none"]) == Snapshot(1, {"a": "1"})
        consensus.commit(key, 1, Change(deletes=["a"]))
        assert consensus.committed(key, ["a"]) == Snapshot(2, {})

    # Forgetting

    def test_a_forgotten_object_is_as_if_it_had_never_been_written(
        self, consensus: Consensus, key: ObjectKey
    ):
        consensus.commit(key, ABSENT, Change({"": "odd", "head": "a"}))
        consensus.forget(key, 1)
        assert consensus.whole(key) == consensus.read(key, ["head"]) == Snapshot(ABSENT, {})
        assert consensus.commit(key, ABSENT, Change({"head": "b"})) == 1

    def test_what_was_changed_meanwhile_is_not_forgotten(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"head": "a"}))
        consensus.commit(key, 1, Change({"head": "b"}))
        with pytest.raises(Outpaced):
            consensus.forget(key, 1)
        assert consensus.whole(key) == Snapshot(2, {"head": "b"})

    # Being too late

    def test_a_stale_version_is_outpaced(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"head": "first"}))
        with pytest.raises(Outpaced) as refusal:
            consensus.commit(key, ABSENT, Change({"head": "second"}))
        assert (refusal.value.key, refusal.value.expected, refusal.value.found) == (key, 0, 1)

    def test_a_stale_commit_changes_nothing(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"head": "first", "other": "kept"}))
        with pytest.raises(Outpaced):
            consensus.commit(key, ABSENT, Change({"head": "second", "new": "row"}, deletes=["other"]))
        snapshot = consensus.read(key, ["head", "other", "new"])
        assert (snapshot.version, dict(snapshot.rows)) == (1, {"head": "first", "other": "kept"})

    def test_a_version_that_never_was_is_outpaced(self, consensus: Consensus, key: ObjectKey):
        with pytest.raises(Outpaced) as refusal:
            consensus.commit(key, 5, Change({"head": "a"}))
        assert (refusal.value.expected, refusal.value.found) == (5, ABSENT)

    def test_a_version_that_never_was_creates_nothing(self, consensus: Consensus, key: ObjectKey):
        with pytest.raises(Outpaced):
            consensus.commit(key, 5, Change({"head": "a"}))
        assert consensus.commit(key, ABSENT, Change({"head": "b"})) == 1

    def test_being_outpaced_is_said_to_a_person(self, consensus: Consensus, key: ObjectKey):
        with pytest.raises(TidemarkError, match=rf"^log {key.name}: changed by another process"):
            consensus.commit(key, 5, Change({"head": "a"}))

    # Rows

    def test_several_rows_change_in_one_commit(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"a": "1", "b": "2", "c": "3"}))
        consensus.commit(key, 1, Change({"b": "two", "d": "4"}, deletes=["a", "c"]))
        snapshot = consensus.read(key, ["a", "b", "c", "d"])
        assert (snapshot.version, dict(snapshot.rows)) == (2, {"b": "two", "d": "4"})

    def test_removing_a_row_that_is_not_there_does_no_harm(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"a": "1"}, deletes=["z"]))
        assert dict(consensus.read(key, ["a", "z"]).rows) == {"a": "1"}

    def test_a_removed_row_can_come_back(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"a": "1"}))
        consensus.commit(key, 1, Change(deletes=["a"]))
        consensus.commit(key, 2, Change({"a": "again"}))
        assert dict(consensus.read(key, ["a"]).rows) == {"a": "again"}

    def test_only_named_rows_are_read(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"a": "1", "ab": "2", "b": "3"}))
        assert dict(consensus.read(key, ["a", "b", "missing"]).rows) == {"a": "1", "b": "3"}

    def test_reading_no_row_gives_the_version(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"a": "1"}))
        snapshot = consensus.read(key, [])
        assert (snapshot.version, dict(snapshot.rows)) == (1, {})

    def test_reading_only_rows_that_are_missing_gives_the_version(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"a": "1"}))
        consensus.commit(key, 1, Change({"a": "2"}))
        snapshot = consensus.read(key, ["missing"])
        assert (snapshot.version, dict(snapshot.rows)) == (2, {})

    @pytest.mark.parametrize("body", ["", 'it\'s "quoted"\n', "größer ≥ 𝄞", "{}", "x" * 100_000])
    def test_a_body_is_kept_as_it_is(self, consensus: Consensus, key: ObjectKey, body: str):
        consensus.commit(key, ABSENT, Change({"a": body}))
        assert dict(consensus.read(key, ["a"]).rows) == {"a": body}

    @pytest.mark.parametrize("row", ["run/manual__2026-01-01T00:00:00+00:00", "it's", "größer 𝄞"])
    def test_a_row_s_name_is_kept_as_it_is(self, consensus: Consensus, key: ObjectKey, row: str):
        consensus.commit(key, ABSENT, Change({row: "a"}))
        assert dict(consensus.read(key, [row]).rows) == {row: "a"}

    # Ranges

    def test_a_range_removes_from_its_first_row_up_to_its_end(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({f"t/{i}": str(i) for i in range(6)}))
        assert consensus.commit(key, 1, Change(ranges=[RowRange("t/1", "t/4")])) == 2
        assert list(consensus.scan(key, "").rows) == ["t/0", "t/4", "t/5"]

    def test_a_range_s_ends_need_not_be_rows(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"head": "a", "t/1": "b", "t/2": "c", "u": "d"}))
        consensus.commit(key, 1, Change(ranges=[RowRange("t/", "t/~")]))
        assert list(consensus.scan(key, "").rows) == ["head", "u"]

    def test_a_range_from_the_first_name_to_the_last_empties_an_object(
        self, consensus: Consensus, key: ObjectKey
    ):
        consensus.commit(key, ABSENT, Change({"head": "a", "größer 𝄞": "b", "\U0010fffe": "c"}))
        consensus.commit(key, 1, Change(ranges=[RowRange("", AFTER_EVERY_NAME)]))
        snapshot = consensus.scan(key, "")
        assert (snapshot.version, dict(snapshot.rows)) == (2, {})

    def test_a_range_without_rows_does_no_harm(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"a": "1"}, ranges=[RowRange("t/", "u")]))
        assert dict(consensus.scan(key, "").rows) == {"a": "1"}

    def test_rows_are_written_removed_and_removed_by_ranges_in_one_commit(
        self, consensus: Consensus, key: ObjectKey
    ):
        consensus.commit(key, ABSENT, Change({"a": "1", "b": "2", **{f"t/{i}": str(i) for i in range(9)}}))
        ranges = [RowRange("t/0", "t/3"), RowRange("t/4", "t/8")]
        consensus.commit(key, 1, Change({"a": "new", "t/3": "new"}, ["b"], ranges))
        assert dict(consensus.scan(key, "").rows) == {"a": "new", "t/3": "new", "t/8": "8"}

    def test_ranges_may_overlap(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({f"t/{i}": str(i) for i in range(6)}))
        consensus.commit(key, 1, Change({}, ["t/2"], [RowRange("t/1", "t/4"), RowRange("t/2", "t/5")]))
        assert list(consensus.scan(key, "").rows) == ["t/0", "t/5"]

    def test_a_row_of_a_removed_range_can_come_back(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"t/1": "a", "t/2": "b"}))
        consensus.commit(key, 1, Change(ranges=[RowRange("t/", "u")]))
        consensus.commit(key, 2, Change({"t/1": "again"}))
        assert dict(consensus.scan(key, "").rows) == {"t/1": "again"}

    def test_a_stale_range_removes_nothing(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"t/1": "a"}))
        consensus.commit(key, 1, Change({"t/2": "b"}))
        with pytest.raises(Outpaced):
            consensus.commit(key, 1, Change(ranges=[RowRange("t/", "u")]))
        assert list(consensus.scan(key, "").rows) == ["t/1", "t/2"]

    def test_a_range_of_another_object_is_not_touched(self, consensus: Consensus, key: ObjectKey):
        other = ObjectKey(key.kind, f"{key.name}/archive")
        for each in (key, other):
            consensus.commit(each, ABSENT, Change({"t/1": "a"}))
        consensus.commit(key, 1, Change(ranges=[RowRange("", AFTER_EVERY_NAME)]))
        assert dict(consensus.scan(other, "").rows) == {"t/1": "a"}

    @pytest.mark.parametrize("row", ["t/1", "t/2"])
    def test_a_row_cannot_be_written_and_removed_by_a_range(self, row: str):
        with pytest.raises(ValueError, match=f"'{row}'.* written and removed in one change"):
            Change({"head": "a", row: "b"}, ranges=[RowRange("t/1", "t/3")])

    def test_a_row_right_behind_a_range_can_be_written(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"t/1": "a", "t/2": "b"}))
        consensus.commit(key, 1, Change({"t/2": "new"}, ranges=[RowRange("t/1", "t/2")]))
        assert dict(consensus.scan(key, "").rows) == {"t/2": "new"}

    @pytest.mark.parametrize(("first", "end"), [("b", "a"), ("a", "a"), ("", "")])
    def test_a_range_of_nothing_is_refused(self, first: str, end: str):
        with pytest.raises(ValueError, match="no row comes"):
            RowRange(first, end)

    # Whole objects

    def test_a_whole_object_has_all_its_rows(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"a": "1", "b": "2", "c": "3"}))
        consensus.commit(key, 1, Change({"d": "4"}, deletes=["a"]))
        snapshot = consensus.whole(key)
        assert (snapshot.version, dict(snapshot.rows)) == (2, {"b": "2", "c": "3", "d": "4"})

    def test_a_whole_object_without_rows_has_its_version(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"a": "1"}))
        consensus.commit(key, 1, Change(deletes=["a"]))
        snapshot = consensus.whole(key)
        assert (snapshot.version, dict(snapshot.rows)) == (2, {})

    def test_a_whole_object_that_was_never_written_is_absent(self, consensus: Consensus, key: ObjectKey):
        snapshot = consensus.whole(key)
        assert (snapshot.version, dict(snapshot.rows)) == (ABSENT, {})

    # Scans

    def test_a_scan_finds_the_rows_of_a_prefix_in_order(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(
            key, ABSENT, Change({"t/3": "c", "t/1": "a", "t/2": "b", "run/1": "x", "u": "y", "t": "z"})
        )
        snapshot = consensus.scan(key, "t/")
        assert (snapshot.version, list(snapshot.rows.items())) == (
            1,
            [("t/1", "a"), ("t/2", "b"), ("t/3", "c")],
        )

    def test_a_limited_scan_gives_the_last_rows(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({f"t/{i}": str(i) for i in range(5)}))
        assert list(consensus.scan(key, "t/", limit=2).rows) == ["t/3", "t/4"]

    def test_a_scan_goes_on_before_a_row(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({f"t/{i}": str(i) for i in range(5)}))
        assert list(consensus.scan(key, "t/", before="t/3", limit=2).rows) == ["t/1", "t/2"]

    def test_pages_lead_from_the_last_row_to_the_first(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"a": "x", **{f"t/{i}": str(i) for i in range(5)}, "u": "x"}))
        pages, before = [], None
        while rows := consensus.scan(key, "t/", before=before, limit=2).rows:
            pages.append(list(rows))
            before = min(rows)
        assert pages == [["t/3", "t/4"], ["t/1", "t/2"], ["t/0"]]

    def test_a_scan_that_begins_at_a_row_leaves_out_the_rows_below_it(
        self, consensus: Consensus, key: ObjectKey
    ):
        consensus.commit(key, ABSENT, Change({f"t/{i}": str(i) for i in range(5)}))
        assert list(consensus.scan(key, "t/", since="t/3").rows) == ["t/3", "t/4"]
        assert list(consensus.scan(key, "t/", since="t/1", before="t/4", limit=2).rows) == ["t/2", "t/3"]
        assert consensus.scan(key, "t/", since="t/5") == Snapshot(1, {})
        assert consensus.scan(key, "t/", since="t/4", before="t/2") == Snapshot(1, {})

    def test_a_scan_can_give_the_first_rows_instead_of_the_last(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"s": "", **{f"t/{i}": str(i) for i in range(5)}}))
        assert list(consensus.scan(key, "t/", limit=2, first=True).rows) == ["t/0", "t/1"]
        assert list(consensus.scan(key, "t/", since="t/2", limit=2, first=True).rows) == ["t/2", "t/3"]

    def test_a_scan_before_the_first_row_finds_nothing(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"t/1": "a"}))
        snapshot = consensus.scan(key, "t/", before="t/1")
        assert (snapshot.version, dict(snapshot.rows)) == (1, {})

    def test_a_scan_before_a_row_of_another_prefix_stays_in_its_own(
        self, consensus: Consensus, key: ObjectKey
    ):
        consensus.commit(key, ABSENT, Change({"run/1": "a", "t/1": "b", "u": "c"}))
        assert dict(consensus.scan(key, "run/", before="u").rows) == {"run/1": "a"}

    def test_a_scan_that_matches_no_row_gives_the_version(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"head": "a"}))
        snapshot = consensus.scan(key, "t/")
        assert (snapshot.version, dict(snapshot.rows)) == (1, {})

    def test_a_scan_of_an_absent_object_finds_nothing(self, consensus: Consensus, key: ObjectKey):
        snapshot = consensus.scan(key, "t/")
        assert (snapshot.version, dict(snapshot.rows)) == (ABSENT, {})

    def test_a_scan_does_not_see_removed_rows(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"t/1": "a", "t/2": "b"}))
        consensus.commit(key, 1, Change(deletes=["t/2"]))
        assert dict(consensus.scan(key, "t/").rows) == {"t/1": "a"}

    # Other objects

    def test_objects_of_another_kind_do_not_touch(self, consensus: Consensus, key: ObjectKey):
        other = ObjectKey(ObjectKind.BINDINGS, key.name)
        consensus.commit(key, ABSENT, Change({"head": "log"}))
        assert consensus.commit(other, ABSENT, Change({"head": "bindings"})) == 1
        assert dict(consensus.read(key, ["head"]).rows) == {"head": "log"}

    def test_objects_of_another_name_do_not_touch(self, consensus: Consensus, key: ObjectKey):
        other = ObjectKey(key.kind, f"{key.name}/archive")
        consensus.commit(key, ABSENT, Change({"head": "one"}))
        assert dict(consensus.scan(other, "").rows) == {}
        assert consensus.commit(other, ABSENT, Change({"head": "other"})) == 1
        assert dict(consensus.read(key, ["head"]).rows) == {"head": "one"}

    # Names

    def test_every_object_of_a_kind_is_named(self, consensus: Consensus, key: ObjectKey):
        others = [ObjectKey(key.kind, f"{key.name}/{part}") for part in ("b", "a")]
        for each in (key, *others):
            consensus.commit(each, ABSENT, Change({"head": "a"}))
        found = [name for name in consensus.names(key.kind) if name.startswith(key.name)]
        assert found == [key.name, f"{key.name}/a", f"{key.name}/b"]

    def test_objects_of_another_kind_are_not_named(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"head": "a"}))
        assert key.name not in consensus.names(ObjectKind.BINDINGS)

    def test_an_object_without_rows_is_named_once(self, consensus: Consensus, key: ObjectKey):
        consensus.commit(key, ABSENT, Change({"a": "1", "b": "2"}))
        consensus.commit(key, 1, Change(deletes=["a", "b"]))
        assert list(consensus.names(key.kind)).count(key.name) == 1

    # Races

    def test_objects_are_listed_by_kind_and_the_beginning_of_their_names(
        self, consensus: Consensus, key: ObjectKey
    ):
        names = [f"{key.name}/b", f"{key.name}/a", f"{key.name}/c"]
        for name in names:
            consensus.commit(ObjectKey(key.kind, name), ABSENT, Change({"head": "{}"}))
        other = next(kind for kind in ObjectKind if kind != key.kind)
        consensus.commit(ObjectKey(other, f"{key.name}/d"), ABSENT, Change({"head": "{}"}))
        consensus.commit(ObjectKey(key.kind, names[2]), 1, Change(deletes=["head"]))
        assert consensus.names(key.kind, f"{key.name}/") == sorted(names)
        assert consensus.names(other, f"{key.name}/") == [f"{key.name}/d"]
        assert consensus.names(key.kind, f"{key.name}/x") == []

    def test_of_many_at_the_same_version_exactly_one_wins(self, consensus: Consensus, key: ObjectKey):
        def commit(racer: int) -> int | Outpaced:
            try:
                return consensus.commit(key, ABSENT, Change({"head": f"racer {racer}", f"by/{racer}": "me"}))
            except Outpaced as refusal:
                return refusal

        outcomes = race(commit)
        winners = [racer for racer, outcome in enumerate(outcomes) if outcome == 1]
        snapshot = consensus.read(key, ["head", *(f"by/{racer}" for racer in range(RACERS))])
        assert len(winners) == 1
        assert dict(snapshot.rows) == {"head": f"racer {winners[0]}", f"by/{winners[0]}": "me"}
        assert snapshot.version == 1

    def test_many_that_read_and_try_again_lose_no_update(self, consensus: Consensus, key: ObjectKey):
        def add_one(_: int) -> None:
            while True:
                found = consensus.read(key, ["count"])
                try:
                    count = int(found.rows.get("count", "0")) + 1
                    consensus.commit(key, found.version, Change({"count": str(count)}))
                    return
                except Outpaced:
                    continue

        race(add_one)
        snapshot = consensus.read(key, ["count"])
        assert (snapshot.version, dict(snapshot.rows)) == (RACERS, {"count": str(RACERS)})


def given_key() -> ObjectKey:
    """An object that no other test uses."""
    return ObjectKey(ObjectKind.LOG, f"contract-{uuid4().hex}")


def race(act: Callable[[int], object]) -> list[object]:
    """What each racer got, all of them having started at the same moment."""
    start = Barrier(RACERS)

    def run(racer: int) -> object:
        start.wait(timeout=30)
        return act(racer)

    with ThreadPoolExecutor(RACERS) as pool:
        return list(pool.map(run, range(RACERS)))
