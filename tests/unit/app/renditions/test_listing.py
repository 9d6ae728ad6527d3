"""What is listed of renditions, and which writers are rebuilt by themselves."""

import pytest
from tests.support.renditions_installed import ANN, RenditionInstallation

from tidemark.app.renditions import on_change
from tidemark.app.renditions.endings import Abandoning, Retiring
from tidemark.app.renditions.estimate import rate_of
from tidemark.app.renditions.listing import list_renditions
from tidemark.app.renditions.on_change import LONGEST_REASON, changed_writers, names_changed
from tidemark.clock import SECOND
from tidemark.delivery.state.writer_state import OffsetEntry, OffsetEntryKind
from tidemark.outputs.model.rendition import Signature

pytestmark = pytest.mark.unit

BOB = Signature("bob", "a rollout", 2)
REBUILD = "on_change: rebuild"


def test_every_rendition_is_listed_with_its_times_and_its_last_author(bank):
    bank.declare(format="jsonl")
    bank.build()
    h = bank.hand_over(2)
    bank.build(signed=BOB)
    Abandoning(bank.renditions(), 3).carry_out(BOB)
    Retiring(bank.renditions(), 1).carry_out(BOB)
    found = list_renditions(bank.renditions())
    assert (found.since, found.frontier) == (h, bank.output.frontier)
    listed = {one.rendition.number: one for one in found.renditions}
    assert [one.rendition.state.value for one in found.renditions] == ["dropped", "active", "abandoned"]
    assert [one.is_active for one in found.renditions] == [False, True, False]
    assert (listed[1].used, listed[2].used) == (((0, h),), ((h, found.frontier),))
    assert [listed[number].upper for number in (1, 2, 3)] == [None, bank.control.bindings_head().upper, None]
    assert [listed[number].newest.who for number in (1, 2, 3)] == ["bob", "ann", "bob"]


def test_what_differs_from_the_file_is_listed(bank):
    bank.declare(format="jsonl")
    (one,) = list_renditions(bank.renditions()).renditions
    assert one.changes == ("format was 'parquet' and is now 'jsonl'",)


def test_a_writer_without_an_output_has_none(tmp_path, monkeypatch):
    found = list_renditions(RenditionInstallation(tmp_path, monkeypatch).renditions())
    assert (found.frontier, found.renditions) == (None, ())


# on_change: rebuild


def changed(bank: RenditionInstallation) -> list[str]:
    return [one.reason for one in changed_writers(bank.opened)]


def test_a_changed_setting_starts_a_rebuild_once(bank):
    bank.declare(format="parquet", further=REBUILD)
    assert changed(bank) == []
    bank.declare(format="jsonl", further=REBUILD)
    (first,) = changed_writers(bank.opened)
    assert first.reason == "on_change: rebuild; format was 'parquet' and is now 'jsonl'"
    assert changed_writers(bank.opened) == [first]
    bank.build()
    assert changed(bank) == []


def test_a_run_of_follow_tells_which_writers_changed(bank):
    bank.declare(format="jsonl", further=REBUILD)
    assert names_changed(bank.opened) == ["archive"]
    bank.build()
    assert names_changed(bank.opened) == []


def test_where_that_cannot_be_told_the_run_does_not_fail(bank, monkeypatch):
    def fail(opened: object) -> None:
        raise ConnectionError("no host available")

    monkeypatch.setattr(on_change, "changed_writers", fail)
    assert names_changed(bank.opened) is None


def test_the_reason_of_a_long_change_is_cut_to_what_a_run_takes(bank):
    names = ", ".join(f"a_rather_long_name_of_a_field_{number}" for number in range(50))
    bank.declare(further=f"{REBUILD}, transforms: [{{pick: {{fields: [{names}]}}}}]")
    (one,) = changed_writers(bank.opened)
    assert (len(one.reason), one.reason[-1]) == (LONGEST_REASON, "…")


def test_without_the_key_nothing_starts_by_itself(bank):
    bank.declare(format="jsonl")
    assert changed(bank) == []


def test_two_versions_of_a_file_do_not_rebuild_against_each_other(bank):
    bank.declare(format="jsonl", further=REBUILD)
    bank.build()
    bank.hand_over(2)
    bank.declare(format="parquet", further=REBUILD)
    assert changed(bank) == []


@pytest.mark.parametrize("further", ["soak: 1h", "reconcile: 7", "expect: []"])
def test_a_key_that_is_no_setting_rebuilds_nothing(bank, further):
    bank.declare(further=f"{REBUILD}, {further}")
    assert changed(bank) == []


# How long a build may take


def entry(position: int, seconds: int, by: str = "run-1") -> OffsetEntry:
    return OffsetEntry(OffsetEntryKind.COMMIT, position, seconds * SECOND, by)


@pytest.mark.parametrize(
    ("history", "rate"),
    [
        pytest.param([], None, id="nothing was measured"),
        pytest.param([entry(99, 10), entry(299, 20)], 20.0, id="two commits of a run"),
        pytest.param([entry(99, 10), entry(199, 9_999, "run-2")], None, id="the time between two runs"),
        pytest.param([entry(99, 10), entry(99, 10)], None, id="no time passed"),
    ],
)
def test_the_rate_of_earlier_deliveries(history, rate):
    assert rate_of(history) == rate


def test_a_signature_is_of_the_time_of_the_clock(bank):
    assert bank.renditions().signature("ann", "why").who == ANN.who
