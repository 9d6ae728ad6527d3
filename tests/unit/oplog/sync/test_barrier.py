"""What a comparison waits for: everything that the topic had when it began."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.log_samples import add_binding, given_binding, given_topic_id

from tidemark.app.sync import wait_until_reached
from tidemark.consensus.memory import MemoryConsensus
from tidemark.log.state.control import LogControl
from tidemark.oplog.sync.barrier import KnownOperations, known_at, newest_known, require_reached
from tidemark.oplog.sync.errors import CollectionBehind
from tidemark.oplog.sync.kafka_operations import TopicState
from tidemark.outputs.errors import OutputMissing

pytestmark = pytest.mark.unit

TOPIC_ID = given_topic_id("oplog")
TOPIC = TopicState("oplog", TOPIC_ID, 2, {0: 0, 1: 0}, {0: 5, 1: 3})


@pytest.fixture
def control() -> LogControl:
    return LogControl(MemoryConsensus(), "events")


def bound(control: LogControl, t: int, base: int, *slices: tuple[str, int, int, int]) -> None:
    add_binding(control, given_binding(t, base, *slices, run_id=f"run-{t}"))


def opened_at(frontier: int | None, since: int = 0) -> Any:
    """A collection that can be read before a time; None: nothing was delivered to it."""

    def advanced() -> Any:
        if frontier is None:
            raise OutputMissing("events", "objects")
        return SimpleNamespace(frontier=frontier, since=since)

    return SimpleNamespace(
        name=("events", "objects"), view=SimpleNamespace(advanced=advanced), asking=nullcontext
    )


def test_the_comparison_begins_where_the_newest_readable_bindings_end(control):
    bound(control, 1_000, 0, ("oplog", 0, 0, 4), ("oplog", 1, 0, 3))
    bound(control, 2_000, 7, ("oplog", 0, 4, 5))
    known = newest_known(opened_at(2_000), control, TOPIC)
    assert known == KnownOperations(1_999, {0: 4, 1: 3})


def test_what_was_not_collected_is_waited_for(control):
    bound(control, 1_000, 0, ("oplog", 0, 0, 4), ("oplog", 1, 0, 3))
    bound(control, 2_000, 7, ("oplog", 0, 4, 5))
    opened = opened_at(2_000)
    with pytest.raises(CollectionBehind, match="partition 0 before offset 5") as behind:
        require_reached(opened, newest_known(opened, control, TOPIC), TOPIC.ends)
    assert behind.value.waiting == {0: 5}


def test_everything_that_was_collected_is_enough(control):
    bound(control, 1_000, 0, ("oplog", 0, 0, 5), ("oplog", 1, 0, 3))
    opened = opened_at(1_500)
    require_reached(opened, newest_known(opened, control, TOPIC), TOPIC.ends)


def test_a_partition_of_which_nothing_was_bound_begins_at_its_first_offset(control):
    bound(control, 1_000, 0, ("oplog", 0, 0, 5))
    topic = TopicState("oplog", TOPIC_ID, 2, {0: 0, 1: 7}, {0: 5, 1: 7})
    assert known_at(control, topic, 1_499).starts == {0: 5, 1: 7}


def test_a_collection_that_nothing_was_delivered_to_is_waited_for(control):
    bound(control, 1_000, 0, ("oplog", 0, 0, 5))
    with pytest.raises(CollectionBehind):
        newest_known(opened_at(None), control, TOPIC)


def test_a_collection_of_which_no_time_can_be_read_is_waited_for(control):
    bound(control, 1_000, 0, ("oplog", 0, 0, 5))
    with pytest.raises(CollectionBehind):
        newest_known(opened_at(0), control, TOPIC)


def test_H12_of_an_empty_topic_nothing_is_waited_for(control):
    topic = TopicState("oplog", TOPIC_ID, 2, {0: 0, 1: 0}, {0: 0, 1: 0})
    opened = opened_at(None)
    known = newest_known(opened, control, topic)
    require_reached(opened, known, topic.ends)
    assert known == KnownOperations(0, {0: 0, 1: 0})


def test_the_collection_may_have_more_than_the_topic_had_when_it_was_looked_at(control):
    bound(control, 1_000, 0, ("oplog", 0, 0, 9), ("oplog", 1, 0, 3))
    opened = opened_at(2_000)
    require_reached(opened, newest_known(opened, control, TOPIC), TOPIC.ends)


class Waited:
    """A synchronisation that has everything at the third look."""

    def __init__(self, looks: int = 3) -> None:
        self.looks = looks

    def reached(self, topic: TopicState, ends: Any) -> KnownOperations:
        self.looks -= 1
        if self.looks:
            raise CollectionBehind("events", "objects", {0: 5})
        return KnownOperations(1, {})


def test_a_command_waits_and_says_so_once():
    said: list[str] = []
    paused: list[float] = []
    wait_until_reached(Waited(), TOPIC, {}, 60, said.append, paused.append)
    assert (len(said), len(paused)) == (2, 2)


def test_a_command_does_not_wait_for_ever():
    with pytest.raises(CollectionBehind):
        wait_until_reached(Waited(), TOPIC, {}, 0, print, lambda seconds: None)
