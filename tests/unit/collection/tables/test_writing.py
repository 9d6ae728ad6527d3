"""The order in which rows are written: the changes first, then all rows of a key together."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.collection_rows import ACCOUNTS, row
from tests.support.faults import Killed, kill_at

from tidemark.collection.model.row import CollectionRow, key_bytes
from tidemark.collection.tables import writing
from tidemark.collection.tables.codec.cells import row_cells
from tidemark.collection.tables.writing import RowWriter
from tidemark.faults import FaultPoint

pytestmark = pytest.mark.unit

A1, A2 = row(10, 0, ("ann",), ("Ann", 1)), row(10, 2, ("ann",), ("Ann", 2))
B1, B2 = row(10, 1, ("bob",), ("Bob", 1)), row(20, 3, ("bob",), None)


class Recorder:
    """``CollectionTables`` and its bulk writer that only note what is sent."""

    def __init__(self) -> None:
        self.place = SimpleNamespace(schema=ACCOUNTS)
        self.sent: list[Any] = []

    def add_rows(self, bulk: "Recorder", rows: Iterable[bytes]) -> None:
        self.sent += [("row", one) for one in rows]

    def add_changes(self, bulk: "Recorder", shard: int, t: int, keys: Iterable[bytes]) -> None:
        self.sent += [("change", shard, t, one) for one in sorted(keys)]

    def flush(self) -> None:
        self.sent.append("acknowledged")


def sent(*rows: CollectionRow) -> list[Any]:
    recorder = Recorder()
    writer = RowWriter(recorder, recorder)  # type: ignore[arg-type]
    writer.add(rows)
    assert writer.finish() == len(rows)
    return recorder.sent


def change(one: CollectionRow) -> Any:
    return ("change", one.shard, one.t, key_bytes(one.key))


def cells(one: CollectionRow) -> Any:
    return ("row", row_cells(one, key_bytes(one.key)))


def test_the_rows_of_a_key_are_sent_one_after_the_other() -> None:
    rows = [one for one in sent(A1, B1, A2, B2) if one[0] == "row"]
    assert rows in (
        [cells(A1), cells(A2), cells(B1), cells(B2)],
        [cells(B1), cells(B2), cells(A1), cells(A2)],
    )


def test_a_key_is_among_the_changes_of_a_time_once() -> None:
    found = [one for one in sent(A1, B1, A2, B2) if one[0] == "change"]
    assert sorted(found) == sorted([change(A1), change(B1), change(B2)])


def test_no_row_is_sent_before_the_changes_are_acknowledged() -> None:
    found = sent(A1, B2)
    rows = [place for place, one in enumerate(found) if one[0] == "row"]
    changes = [place for place, one in enumerate(found) if one[0] == "change"]
    assert max(changes) < found.index("acknowledged") < min(rows)


def test_rows_are_acknowledged_before_they_count() -> None:
    assert sent(A1)[-1] == "acknowledged"


def test_without_rows_nothing_is_sent() -> None:
    assert [one for one in sent() if one != "acknowledged"] == []


@pytest.mark.parametrize(("limit", "value"), [("ROWS_TOGETHER", 2), ("BYTES_TOGETHER", 1)])
def test_what_is_collected_has_a_limit(monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
    monkeypatch.setattr(writing, limit, value)
    found = sent(A1, A2, B1, B2)
    assert found.index(cells(A1)) < found.index(change(B1))


def test_a_process_that_is_killed_between_changes_and_rows_has_sent_no_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorder = Recorder()
    writer = RowWriter(recorder, recorder)  # type: ignore[arg-type]
    writer.add([A1, B1])
    kill_at(monkeypatch, FaultPoint.COLLECTION_CHANGES_WRITTEN)
    with pytest.raises(Killed):
        writer.finish()
    assert {one[0] for one in recorder.sent if one != "acknowledged"} == {"change"}
