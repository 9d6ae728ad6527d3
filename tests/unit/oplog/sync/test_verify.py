"""The corrected objects once more: as they were corrected, or explained by a later operation."""

import pytest
from tests.support.operation_topic import operation

from tidemark.oplog.sync.current_objects import CurrentRow
from tidemark.oplog.sync.decisions import CurrentObject
from tidemark.oplog.sync.sending import Place, Settled
from tidemark.oplog.sync.verify import MOST_NAMED, Verified, verify

pytestmark = pytest.mark.unit

SENT = Settled(operation("x", "update", 10, "user/u"), (1, 7), is_sent=True)
AS_SENT = CurrentObject(False, 10_000, ("user/u",))


def verified(settled: Settled, current: CurrentObject | None, place: Place = (1, 7)) -> Verified:
    return verify([settled], {b"video/x": CurrentRow(current, place)} if current else {})


def test_an_object_as_it_was_corrected():
    assert verified(SENT, AS_SENT).as_sent == 1


def test_an_object_that_was_deleted_by_a_correction():
    deleted = Settled(operation("x", "delete", 11, "user/u"), (1, 7), is_sent=True)
    assert verified(deleted, CurrentObject(True, 11_000, ("user/u",))).as_sent == 1


@pytest.mark.parametrize("current", [AS_SENT, CurrentObject(True, 20_000, ())])
def test_a_later_operation_explains_anything(current):
    assert verified(SENT, current, (1, 8)).changed_since == 1


def test_an_operation_that_overtook_the_correction_explains_it():
    overtaken = Settled(SENT.operation, (1, 7), is_sent=False)
    assert verified(overtaken, CurrentObject(False, 20_000, ())).changed_since == 1


@pytest.mark.parametrize(
    ("current", "place"),
    [
        pytest.param(None, (1, 7), id="no row"),
        pytest.param(AS_SENT, (1, 6), id="an earlier operation"),
        pytest.param(CurrentObject(False, 10_000, ()), (1, 7), id="other parents"),
        pytest.param(CurrentObject(True, 10_000, ("user/u",)), (1, 7), id="deleted"),
    ],
)
def test_nothing_explains_anything_else(current, place):
    found = verified(SENT, current, place)
    assert (found.missing, found.objects) == (1, ("video/x",))


def test_results_are_added_and_name_so_many_objects():
    one = Verified(1, 2, MOST_NAMED, ("video/x",) * MOST_NAMED)
    added = one + one
    assert (added.as_sent, added.changed_since, added.missing) == (2, 4, 2 * MOST_NAMED)
    assert len(added.objects) == MOST_NAMED
