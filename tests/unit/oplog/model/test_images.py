"""What a client is told about an object, from its newest row and the one before."""

import pytest
from tests.support.oplog_samples import operation, parents_filter

from tidemark.operations.filters import OperationFilter
from tidemark.operations.operation import EventName
from tidemark.oplog.model.images import ObjectRow, event_of, needs_before
from tidemark.oplog.model.stream_filter import StreamFilter

pytestmark = pytest.mark.unit

MINE, THEIRS = "user/1", "user/2"
FILTER = parents_filter(MINE)


def row(event: EventName = EventName.UPDATE, *parents: str) -> ObjectRow:
    return ObjectRow(1, operation(event=event, parents=parents), 5, 0, 9)


HERE, ELSEWHERE = row(EventName.UPDATE, MINE), row(EventName.UPDATE, THEIRS)
DELETED_HERE, DELETED_ELSEWHERE = row(EventName.DELETE, MINE), row(EventName.DELETE, THEIRS)
DELETED_BARE = row(EventName.DELETE)


@pytest.mark.parametrize(
    ("before", "after", "event"),
    [
        (None, HERE, "insert"),
        (HERE, HERE, "insert"),
        (ELSEWHERE, HERE, "insert"),
        (DELETED_HERE, HERE, "insert"),
        (HERE, ELSEWHERE, "delete"),
        (None, ELSEWHERE, None),
        (ELSEWHERE, ELSEWHERE, None),
        (DELETED_HERE, ELSEWHERE, None),
        (HERE, DELETED_HERE, "delete"),
        (None, DELETED_HERE, "delete"),
        (HERE, DELETED_ELSEWHERE, "delete"),
        (ELSEWHERE, DELETED_ELSEWHERE, None),
        (ELSEWHERE, DELETED_BARE, "delete"),
    ],
)
def test_before_and_after_images_are_compared_with_the_filter(
    before: ObjectRow | None, after: ObjectRow, event: str | None
) -> None:
    found = event_of(after, before, FILTER)
    assert (found and found[0]) == event


def test_an_object_that_has_left_is_deleted_with_the_parents_that_the_client_knows() -> None:
    found = event_of(ELSEWHERE, HERE, FILTER)
    assert found is not None
    assert found[1].parents == (MINE,)


def test_a_bare_delete_does_not_pass_limits() -> None:
    limited = StreamFilter(allowed=OperationFilter.of(parents=[MINE]))
    assert event_of(DELETED_BARE, ELSEWHERE, limited) is None


def test_a_bare_delete_of_an_object_within_the_limits_is_told() -> None:
    limited = StreamFilter(allowed=OperationFilter.of(parents=[MINE]))
    found = event_of(DELETED_BARE, HERE, limited)
    assert found is not None
    assert found[1].parents == (MINE,)


def test_the_row_before_is_needed_where_the_object_may_have_left() -> None:
    assert needs_before(ELSEWHERE, FILTER)


def test_without_a_filter_by_parents_the_row_before_is_not_needed() -> None:
    assert not needs_before(ELSEWHERE, StreamFilter(OperationFilter.of(["audio"])))
