"""What is said of a topic that exists, and what is asked for where it does not (item 23)."""

import pytest

from tidemark.kafka.topic_shape import (
    FOREVER,
    CreationOutcome,
    TopicFound,
    TopicShape,
    TopicTimestamps,
    judge,
)

pytestmark = pytest.mark.unit

DAY = 86_400_000


def found(**other):
    fields = {"partitions": 3, "replication": 1, "retention_ms": 7 * DAY, "cleanup_policy": "delete"}
    return TopicFound("orders", **fields | other)


def test_what_was_asked_for_goes_before_what_the_file_says():
    asked, declared = TopicShape(partitions=6), TopicShape(partitions=3, replication=2)
    assert asked.over(declared) == TopicShape(6, 2, None)


def test_a_topic_that_is_as_wanted_is_no_problem():
    judged = judge(found(), TopicShape(3, 1, 7 * DAY))
    assert (judged.outcome, judged.problem) == (CreationOutcome.EXISTS, None)
    assert judged.line == "orders: exists: 3 partitions, 1 copy, records for 7d"


def test_what_was_not_declared_is_never_a_difference():
    assert judge(found(), TopicShape()).problem is None


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (TopicShape(partitions=6), "It has 3 partitions instead of 6; it was not changed"),
        (TopicShape(replication=3), "It has 1 copies instead of 3; it was not changed"),
        (TopicShape(retention_ms=FOREVER), "It keeps records for 7d instead of for ever; it was not changed"),
        (
            TopicShape(timestamps=TopicTimestamps.APPENDED),
            "It has message.timestamp.type=CreateTime instead of LogAppendTime; it was not changed",
        ),
        (TopicShape(6, 3), "It has 3 partitions instead of 6 and has 1 copies instead of 3; it was"),
    ],
)
def test_a_topic_that_is_different_is_said_to_be_and_left_alone(wanted, said):
    assert judge(found(), wanted).problem.startswith(said)


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_topic_is_refused_whatever_else_it_is(policy):
    judged = judge(found(cleanup_policy=policy), TopicShape(partitions=6))
    assert judged.outcome is CreationOutcome.REFUSED
    assert judged.problem.startswith(f"It has cleanup.policy={policy}, so its records vanish one by one.")


@pytest.mark.parametrize(
    ("retention", "said"),
    [(FOREVER, "for ever"), (DAY, "for 1d"), (5_400_000, "for 90m"), (61_000, "for 61s"), (1, "for 1 ms")],
)
def test_how_long_records_are_kept_is_said_for_people(retention, said):
    assert found(retention_ms=retention).said.endswith(f"records {said}")
