"""Requirements of the original's README about operations that no other module's tests have by number."""

import json

import pytest

from tidemark.operations.errors import BadOperation
from tidemark.operations.operation import encoded
from tidemark.operations.reading import read_operation

pytestmark = pytest.mark.unit

NOON = 1_764_158_400_000
GIVEN = {"event": "insert", "parents": ["user/1"], "type": "video", "id": "x"}


def read(**fields: object) -> dict[str, object]:
    """An operation as it is kept."""
    kept: dict[str, object] = json.loads(encoded(read_operation(json.dumps(GIVEN | fields).encode(), NOON)))
    return kept


@pytest.mark.parametrize("event", ["insert", "update", "delete"])
def test_R6_the_three_events(event: str) -> None:
    assert read(event=event)["event"] == event


@pytest.mark.parametrize("event", ["create", "upsert", "reset", "live", "inserted", "", 1, None, ["insert"]])
def test_R6_any_other_event_is_refused(event: object) -> None:
    with pytest.raises(BadOperation, match="event"):
        read(event=event)


@pytest.mark.parametrize("field", ["type", "id"])
@pytest.mark.parametrize("value", [1, 1.5, True, None, "", [], {}, ["x"]])
def test_R8_type_and_id_are_texts(field: str, value: object) -> None:
    with pytest.raises(BadOperation, match=field):
        read(**{field: value})


def test_H3_an_object_may_have_no_parents() -> None:
    assert read(parents=[])["parents"] == []


def test_H15_nothing_of_an_object_but_its_identity_and_time_is_kept() -> None:
    kept = read(title="a title", data={"password": "a secret"}, ref="http://shop.example/x")
    assert kept.keys() == {"event", "timestamp", "parents", "type", "id"}
