"""The sensor of a synchronisation: waits until the collection has everything."""

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from tidemark.oplog.sync.barrier import KnownOperations
from tidemark.oplog.sync.errors import CollectionBehind, OplogTopicMissing

pytestmark = pytest.mark.unit


class Sync:
    """A synchronisation whose collection has everything before some offsets."""

    writer = "objects"

    def __init__(self) -> None:
        self.has = 5
        self.files = SimpleNamespace(
            diff=lambda *given: given, sent=lambda diff: SimpleNamespace(ends={0: 9}, of=diff)
        )
        self.missing = False

    def read_topic(self) -> Any:
        if self.missing:
            raise OplogTopicMissing("events", "oplog")
        return SimpleNamespace(ends={0: 5})

    def reached(self, topic: Any, ends: dict[int, int]) -> KnownOperations:
        waiting = {number: end for number, end in ends.items() if end > self.has}
        if waiting:
            raise CollectionBehind("events", "objects", waiting)
        return KnownOperations(77, {0: self.has})


@pytest.fixture
def sync(monkeypatch: pytest.MonkeyPatch) -> Sync:
    from tidemark.app import sync as app
    from tidemark_airflow.sensors import collected

    sync = Sync()
    monkeypatch.setattr(collected, "open_pipeline", lambda name: name)
    monkeypatch.setattr(app, "open_sync", lambda opened: sync)
    return sync


def sensor(**given: str) -> Any:
    from tidemark_airflow.sensors.collected import CollectedSensor

    return CollectedSensor(task_id="barrier", pipeline="events", **given)


def test_what_the_collection_has_lets_the_run_pass(sync):
    assert sensor().execute({}) == {"t": 77}


def test_what_it_does_not_have_is_waited_for(sync):
    from airflow.sdk.exceptions import TaskDeferred

    sync.has = 4
    waiting = sensor()
    with pytest.raises(TaskDeferred) as deferred:
        waiting.execute({})
    assert deferred.value.trigger.serialize()[1]["ends"] == [[0, 5]]
    sync.has = 5
    assert getattr(waiting, deferred.value.method_name)({}, {}) == {"t": 77}


def test_corrections_that_were_sent_are_waited_for(sync):
    from airflow.sdk.exceptions import TaskDeferred

    with pytest.raises(TaskDeferred) as deferred:
        sensor(run="key", t="7").execute({})
    assert deferred.value.trigger.serialize()[1]["ends"] == [[0, 9]]


def test_a_topic_that_is_missing_fails_the_run_for_good(sync):
    sync.missing = True
    with pytest.raises(AirflowFailException, match="topics create"):
        sensor().execute({})
