"""The topic of an agent: its partitions are those of the record, whatever becomes of the topic."""

from uuid import uuid4

import pytest

from tidemark.errors import TidemarkError
from tidemark.kafka.partitioning import key_hash
from tidemark.kafka.topics import PartitionState, TopicDescription
from tidemark.oplog.agent.errors import TopicUnusable
from tidemark.oplog.agent.topic import AgentTopic

pytestmark = pytest.mark.unit


class World:
    """A topic and its record, as they are now."""

    def __init__(self, partitions: int = 4, recorded: int | None = None) -> None:
        self.id, self.partitions, self.recorded = uuid4(), partitions, recorded
        self.is_away = False
        self.topic = AgentTopic("shop", "oplog", self.describe, self.read_record)

    def describe(self) -> TopicDescription:
        return TopicDescription(
            self.id, tuple(PartitionState(number, True, 1) for number in range(self.partitions))
        )

    def read_record(self) -> int | None:
        if self.is_away:
            raise TidemarkError("Cassandra is away.")
        return self.recorded


def test_before_the_first_run_the_topic_itself_says_how_many_partitions_there_are():
    world = World(4)
    world.topic.check()
    assert world.topic.partition_of(b"video/x") == key_hash(b"video/x") % 4


def test_the_record_goes_before_the_topic():
    world = World(6, recorded=4)
    world.topic.check()
    assert world.topic.partitions == 4
    assert world.topic.warning == "has 6 partitions; 4 are used"


def test_further_partitions_move_no_object():
    world = World(4)
    world.topic.look()
    world.partitions = 6
    world.topic.check()
    assert world.topic.partitions == 4


def test_fewer_partitions_than_recorded_take_no_operations():
    world = World(2, recorded=4)
    with pytest.raises(TopicUnusable, match="has 2 partitions, but 4 were recorded"):
        world.topic.check()


def test_without_cassandra_what_is_known_goes_on():
    world = World(4, recorded=4)
    world.topic.look()
    world.is_away, world.partitions = True, 6
    world.topic.check()
    assert world.topic.partitions == 4


def test_an_agent_starts_without_cassandra():
    world = World(4)
    world.is_away = True
    world.topic.check()
    assert world.topic.partitions == 4


def test_a_topic_that_was_made_again_is_told():
    world = World(4)
    world.topic.look()
    world.id = uuid4()
    world.topic.look()
    assert world.topic.warning == "was deleted and made again since the agent was started"
