"""The watermark: who holds it back, and by how much."""

import pytest
from tests.support.compaction_samples import binding_of, given_log, of_keys

from tidemark.compaction.watermark import Reason, find_watermark
from tidemark.log.model.manifest import Manifest
from tidemark.log.state.holds import Hold

pytestmark = pytest.mark.unit

LOG = given_log(of_keys("a b c d e f g h i j"), of_keys("k l")).manifest
BINDINGS = [binding_of(t, base, 4) for t, base in ((100, 0), (200, 4), (300, 8))]


def mark(positions, now=1_000, min_lag=0, manifest=LOG):
    return find_watermark(manifest, positions, BINDINGS, now, min_lag)


def test_G1_the_lowest_position_bounds_it_strictly():
    found = mark({"fast": 11, "slow": 6})
    assert (found.id, found.held_back_by, found.withheld) == (6, "slow", 4)


def test_G1_a_writer_without_a_position_blocks_everything():
    assert mark({"fast": 11, "new": -1}).id == 0


def test_G1_a_log_without_writers_is_not_compacted():
    found = mark({})
    assert (found.id, found.limits[0].reason) == (0, Reason.NO_WRITER)


def test_G4_the_active_segment_is_a_reason_of_its_own():
    found = mark({"fast": 11})
    assert (found.id, found.held_back_by, found.withheld) == (10, "active segment", 2)


@pytest.mark.parametrize(
    ("now", "below"), [(1_000, 10), (299, 8), (300, 8), (301, 10), (200, 4), (150, 4), (50, 0)]
)
def test_what_is_bound_less_than_min_lag_ago_is_not_eligible(now, below):
    found = mark({"fast": 11}, now=now + 50, min_lag=51)
    assert found.id == below
    assert found.held_back_by == ("active segment" if below == 10 else "min_lag")


def test_all_limits_are_told_the_lowest_first():
    found = mark({"b": 3, "a": 3}, now=250, min_lag=100)
    assert [(one.name, one.below, one.ids) for one in found.limits] == [
        ("a", 3, 1),
        ("b", 3, 1),
        ("min_lag", 4, 6),
        ("active segment", 10, 2),
    ]


def test_a_hold_keeps_what_comes_behind_its_id():
    found = find_watermark(LOG, {"fast": 11}, BINDINGS, 1_000, 0, [Hold("a purge", 6)])
    assert (found.id, found.held_back_by, found.withheld) == (7, "a purge", 3)
    assert found.limits[0].reason is Reason.HOLD


def test_T48_an_empty_log_has_nothing_below_its_watermark():
    assert mark({"w": -1}, manifest=Manifest("orders")).id == 0
    assert find_watermark(Manifest("orders"), {"w": 5}, (), 0, 0).id == 0
