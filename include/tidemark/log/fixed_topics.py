"""The id and the partition count of topics of which they are fixed: recorded once, before anything is sent.

What computes partitions (agents, synchronisations) takes the recorded number, never the topic's own. The
first process that needs the topic records it: an agent, or the first bind. Nothing here judges a topic that
changed afterwards; bind does.
"""

from dataclasses import replace

from tidemark.consensus.update import retry_outpaced
from tidemark.errors import with_fields
from tidemark.log.errors import LogError
from tidemark.log.model.binding import Available
from tidemark.log.model.fixed_partitions import FixedTopic, with_counts
from tidemark.log.state.control import BindingsHead, LogControl


@with_fields
class TopicHasNoId(LogError):
    """A topic whose id is needed has none."""

    needs_person = True

    pipeline: str
    topic: str

    text = (
        "{pipeline}: Kafka gives no id of topic {topic}, so a topic that is made again under its name could "
        "not be told from it. Nothing was recorded. Brokers give ids to topics since Kafka 2.8 with "
        "inter.broker.protocol.version 2.8: upgrade the cluster, then create the topic anew."
    )


def recorded_topic(control: LogControl, topic: str) -> FixedTopic | None:
    """A topic as it was recorded; None where it was not, or where a recreated one was not recorded yet."""
    return _recorded(control.bindings_head(), topic)


def record_topic(control: LogControl, available: Available, topic: str) -> FixedTopic:
    """Record a topic as Kafka has it, unless it was recorded before; returns what is recorded.

    ``available`` is the current state of the source's topics. Raises ``TopicHasNoId``.
    """

    def attempt(head: BindingsHead) -> FixedTopic:
        if (known := _recorded(head, topic)) is not None:
            return known
        if not (topic_id := available.topic_ids.get(topic)):
            raise TopicHasNoId(control.pipeline, topic)
        fixed = with_counts(head.partitions, available)
        # An id that is recorded already is that of the last binding: bind notices that this one differs.
        after = replace(head, partitions=fixed, topic_ids={topic: topic_id, **head.topic_ids})
        control.replace_head(head, after)
        return FixedTopic(topic, after.topic_ids[topic], fixed[topic].computed_by)

    return retry_outpaced(control.bindings_head, attempt)


def _recorded(head: BindingsHead, topic: str) -> FixedTopic | None:
    if topic not in head.partitions or topic not in head.topic_ids:
        return None
    return FixedTopic(topic, head.topic_ids[topic], head.partitions[topic].computed_by)
