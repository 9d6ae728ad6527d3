"""``keep`` of a collection: what would be removed, what is, and what a verification makes of it."""

from datetime import timedelta

import pytest
from tests.support.compared_world import EXACT, EXPLAINED, RenditionWorld
from tests.support.fault_points import TRIM
from tests.support.faults import Killed

from tidemark.app.renditions import trim as module
from tidemark.app.renditions.opened import WriterRenditions
from tidemark.app.renditions.trim import Trimming
from tidemark.clock import SECOND
from tidemark.outputs.state.reader_store import ReaderStore
from tidemark.outputs.state.trim import TrimmedRendition
from tidemark.verification.outputs.collection import FORGOTTEN
from tidemark.verification.outputs.found import Extent
from tidemark.verification.outputs.reconcile import verify_output

pytestmark = pytest.mark.unit

DAYS = round(timedelta(days=90).total_seconds()) * SECOND
ALL = Extent(everything=True)


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Accounts at 1,000, 2,000, 3,000 and 4,000; the versions before 90 days may go."""
    world = RenditionWorld(tmp_path, monkeypatch, keep="90d")
    monkeypatch.setattr(module, "build_rendition", world._build)
    for words in ("a=1 b=1 c=1", "a=2 b", "a=3", "a=4"):
        world.publish_records(words)
    world.deliver(world.started())
    return world


def trimming(world, cut):
    """At a moment at which versions before ``cut`` are 90 days old."""
    return Trimming(WriterRenditions.of(world.opened, "accounts", lambda: cut + DAYS))


def readers(world):
    return ReaderStore(world.outputs, lambda: DAYS)


def states(world, since):
    return {t: world.collection.state(t) for t in range(since, 5_000, 100)}


def test_versions_that_no_time_from_the_cut_on_sees_go(world):
    before = states(world, 3_000)
    done = trimming(world, 3_000).run()
    assert done == (3_000, (TrimmedRendition(1, keys=2, times=2),))
    assert states(world, 3_000) == before
    assert [(row.t, row.gone) for row in world.collection.rows] == [
        (1_000, False),
        (2_000, True),
        (3_000, False),
        (4_000, False),
    ]
    assert world.collection.changes == {3_000, 4_000}
    assert trimming(world, 3_000).run() == (3_000, ())


def test_a_plan_says_what_would_go_and_who_holds_it_back_and_changes_nothing(world):
    readers(world).pin("audit", 2_500, "ann")
    plan = trimming(world, 3_500).plan()
    assert list(plan.lines) == [
        "orders/accounts: versions older than 7776000s go",
        "  first readable time: 2499 (times before it are not readable any more)",
        "  reader audit (ann) holds 2500, so what it can read stays",
        "  rendition 1, collections.accounts: older versions of 2 keys and the changes of 2 times go; the "
        "table has about 700 bytes",
    ]
    assert plan.to_dict()["renditions"] == [
        {"number": 1, "place": "collections.accounts", "keys": 2, "times": 2, "bytes": 700}
    ]
    assert len(world.collection.rows) == 7
    assert readers(world).load().since < 1_000
    assert trimming(world, 3_500).run().since == 2_499
    assert list(trimming(world, 3_500).plan().lines)[-1] == "  no version goes"


def test_rows_that_are_delivered_again_below_the_cut_stay_away_and_newer_ones_stay(world):
    trimming(world, 3_000).run()
    before = world.collection.rows
    world.deliver_again(world.started())
    assert world.collection.rows == before


@pytest.mark.parametrize("point", TRIM)
def test_a_removal_that_was_killed_is_finished_by_the_next(world, kill_at, point):
    before = states(world, 3_000)
    kill_at(point)
    with pytest.raises(Killed):
        trimming(world, 3_000).run()
    assert states(world, 3_000) == before
    assert verified(world).is_clean
    trimming(world, 3_000).run()
    assert states(world, 3_000) == before
    assert (len(world.collection.rows), world.collection.changes) == (4, {3_000, 4_000})
    assert world.found.rendition(1).trimmed == 3_000


def verified(world):
    found = verify_output(world.started(), world.log, world.positions, ALL)
    assert found is not None
    return found


def test_a_verification_misses_nothing_that_was_removed(world):
    trimming(world, 3_000).run()
    found = verified(world)
    assert (found.is_clean, found.looked_at, found.not_provable) == (True, {"bindings": 1}, {FORGOTTEN: 3})


def test_what_is_removed_while_a_verification_reads_is_no_difference(world, monkeypatch):
    target = type(world.started().target)
    read = target.digests

    def meanwhile(self, t):
        trimming(world, 3_000).run()
        return read(self, t)

    monkeypatch.setattr(target, "digests", meanwhile)
    assert verified(world).is_clean


def test_a_row_that_is_lost_above_the_cut_is_still_found(world):
    trimming(world, 3_000).run()
    (row,) = [one for one in world.collection.rows if one.t == 4_000]
    del world.collection._cells[row.key, row.t, row.message_id]
    assert not verified(world).is_clean


@pytest.mark.parametrize("mode", [EXACT, EXPLAINED])
def test_a_rendition_that_is_built_afterwards_is_the_same(world, mode):
    trimming(world, 3_000).run()
    world.build(keep="90d", shards=8)
    assert world.verify(mode).is_clean
    done = trimming(world, 3_500).run()
    assert [one.number for one in done.renditions] == [2]
    assert world.verify(mode).is_clean


def test_what_two_renditions_are_compared_by_stays_meanwhile(world, monkeypatch):
    world.clock.now = DAYS
    trimming(world, 1_500).run()
    world.build(keep="90d")
    target = type(world.started().target)
    read, sinces = target.states, []

    def meanwhile(self, at, piece, **how):
        sinces.append(trimming(world, 3_000).run().since)
        return read(self, at, piece, **how)

    monkeypatch.setattr(target, "states", meanwhile)
    assert world.verify(EXACT).is_clean
    assert set(sinces) == {1_500}
    assert readers(world).load().capabilities == {}
