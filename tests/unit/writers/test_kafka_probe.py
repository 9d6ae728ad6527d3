"""Item 4: what has to be so before a topic takes a transaction; a real one is in tests/system."""

import pytest

from tidemark.kafka.topics import PartitionState
from tidemark.writers.kafka.probe import TopicState, probe_id, refusal_of
from tidemark.writers.kafka.target import TargetTopic

pytestmark = pytest.mark.unit

GOOD = PartitionState(0, has_leader=True, in_sync=3)


def test_a_topic_that_takes_messages_is_not_refused():
    assert refusal_of(TopicState((GOOD,), needed=2)) is None


@pytest.mark.parametrize(
    ("partition", "needed", "said"),
    [
        pytest.param(PartitionState(1, False, 3), 2, "partition 1 has no leader", id="no leader"),
        pytest.param(
            PartitionState(1, True, 1),
            2,
            "partition 1 has 1 replicas in sync, and min.insync.replicas is 2",
            id="too few replicas",
        ),
    ],
)
def test_every_partition_has_to_take_messages(partition, needed, said):
    assert refusal_of(TopicState((GOOD, partition), needed)) == said


def test_a_user_who_may_only_read_is_refused():
    assert refusal_of(TopicState((GOOD,), 1, may_write=False)) == "this user may not write to it"


def test_a_probe_fences_no_producer_of_the_writer():
    target = TargetTopic("orders", "out", "copy", "kafka_default", None)
    assert probe_id(target).startswith("tidemark.orders.out.probe.")
    assert probe_id(target) not in {target.transactional_id(number) for number in range(100)}
