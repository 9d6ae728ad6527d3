"""The ``kafka`` writer: every message exactly once into a topic, in id order within each of its partitions.

A message keeps its key, value, headers and timestamp, and gets two more headers: its id and the writer. The
partition is computed from the key, or from the id where there is no key, and from the number of partitions,
which must not change after registration. Ids at or below the last one in a partition are not sent again. A
topic that was deleted and recreated is another topic: nothing is sent to it, and no position is committed for
messages that were sent to it unnoticed. Never chooses a partition at random, never creates or changes a
topic.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from tidemark.connections import KafkaConnection
from tidemark.delivery.writer import (
    BadMessage,
    Check,
    Later,
    Part,
    TargetIdentity,
    TargetReplaced,
    Writing,
    Written,
    admit,
)
from tidemark.kafka.partitioning import key_hash
from tidemark.log.model.binding import Binding
from tidemark.log.model.manifest import LogFile
from tidemark.writers.kafka.kind import KafkaDeclaration
from tidemark.writers.kafka.last_id import FIRST_WINDOW, end_of, find_last_id, read_tail
from tidemark.writers.kafka.output import Outputs, let_go, send_after_all
from tidemark.writers.kafka.probe import try_topic
from tidemark.writers.kafka.target import TargetTopic, count_partitions, describe_topic
from tidemark.writers.transformed import TransformingWriter

PARTITIONS_AT_ONCE = 8
"""How many partitions are searched for their last id concurrently."""
REBUILD = "Rebuild with a new writer, a new topic and `start: earliest`: it delivers all messages in order."


@dataclass(frozen=True)
class KafkaWriter(TransformingWriter):
    """Writes one topic.

    Attributes:
        pipeline: The pipeline's name.
        declared: The writer's declaration.
        connection: The connection to the brokers.
        partitions: The topic's number of partitions; None: read from the broker when needed.
        topic_id: The only topic of this name that it writes to; None for any.
        source_format: The source format, which decides how transforms read a value.
    """

    pipeline: str
    declared: KafkaDeclaration
    connection: KafkaConnection
    partitions: int | None = None
    topic_id: str | None = None
    source_format: str = "json"

    @property
    def shape(self) -> Mapping[str, Any]:
        """See ``Writer.shape``. Asks the broker for the number of partitions."""
        return {**self.declared_shape, "partitions": self._count}

    @property
    def declared_shape(self) -> Mapping[str, Any]:
        """See ``Writer.declared_shape``."""
        keys = {"kind", "topic", "namespaces", "transforms"}
        return {**self.declared.model_dump(mode="json", include=keys), **self.transformation.shape}

    def identify(self) -> TargetIdentity | None:
        """See ``Writer.identify``; None where the broker gives topics no ids."""
        found = describe_topic(self.target)
        if found.id is None:
            return None
        return TargetIdentity(found.id, f"topic {self.declared.topic}", {"partitions": found.partitions})

    def bound_to(self, identity: TargetIdentity) -> "KafkaWriter":
        """See ``Writer.bound_to``."""
        return replace(self, partitions=identity.shape["partitions"], topic_id=identity.id)

    def reached(self) -> Mapping[int, int]:
        """See ``Writer.reached``: per partition of the topic, without those that retention has emptied."""
        numbers = range(self._count)
        with ThreadPoolExecutor(PARTITIONS_AT_ONCE) as pool:
            tails = list(pool.map(lambda number: read_tail(self.target, number, FIRST_WINDOW), numbers))
        return {number: tails[number].last_id for number in numbers if not tails[number].is_emptied}

    def placing(self) -> Callable[[Mapping[str, Any]], int | None]:
        """See ``Writer.placing``. A message that cannot be decoded is not written."""
        transformation = self.transformation
        pattern, count = re.compile(self.declared.namespaces), self._count

        def place(message: Mapping[str, Any]) -> int | None:
            if not pattern.search(message["namespace"]):
                return None
            try:
                if transformation.apply(message) is None:
                    return None
            except BadMessage:
                return None
            return partition_of(message["key"], message["id"], count)

        return place

    @property
    def verifier(self) -> str:
        """See ``Writer.verifier``."""
        return "tidemark.verification.outputs.topics:verify_topic"

    @property
    def compared_by(self) -> str:
        """See ``Writer.compared_by``."""
        return "tidemark.verification.renditions.topics:compare_topics"

    def prepare(self) -> None:
        """Refuse a topic that does not exist."""
        let_go(self.target)
        count_partitions(self.target)

    def cut(self, binding: Binding, files: Sequence[LogFile]) -> list[Part]:
        """One part per partition of the topic, because a partition has one producer."""
        return [Part(binding, tuple(files), number) for number in range(self._count)]

    def write(self, part: Part, writing: Writing) -> Written:
        """See ``Writer.write``."""
        transformation = self.transformation
        pattern = re.compile(self.declared.namespaces)
        written = filtered = ignored = 0
        comes_singly = part.last_id is not None
        if not comes_singly:  # for single messages, the check in ``settle`` is enough
            self._refuse_other_topic()
        with Outputs(self.target, writing.lease, keep=comes_singly) as outputs:
            try:
                for batch in writing.batches:
                    own = batch if part.number is None else self._of_partition(part.number, batch)
                    admitted = admit(own, pattern)
                    filtered += own.num_rows - admitted.num_rows
                    for message in admitted.to_pylist():
                        output = outputs[partition_of(message["key"], message["id"], self._count)]
                        is_new = message["id"] > output.last_id
                        changed = transformation.apply(message) if is_new else None
                        if changed is None:
                            ignored += 1
                        else:
                            output.add(changed, writing.lease)
                            written += 1
            except BadMessage:
                outputs.commit()
                raise
            outputs.commit()
        return Written(written, filtered, ignored)

    def finish(self, part: Part, writing: Writing) -> None:
        """Nothing: committed transactions are complete."""

    def is_reachable(self) -> None:
        """Commit an empty transaction, and check the topic's state."""
        try_topic(self.target)

    def settle(self, binding: Binding, position: int, lease: Check) -> None:
        """Raise ``TargetReplaced`` where the topic was recreated meanwhile."""
        self._refuse_other_topic()

    def refuses_redelivery(self, message: Mapping[str, Any], later: Later) -> str | None:
        """Refuses a message where a later one with the same key was sent: order would be broken."""
        if refusal := self.transformation.refusal_of(self.declared.namespaces, message):
            return refusal
        if message["key"] is not None and not later.is_whole:
            return f"compaction may have removed what came after it with the same key. {REBUILD}"
        admits = re.compile(self.declared.namespaces).search
        follower = later.first_of(message["key"], lambda one: admits(one["namespace"]) is not None)
        if follower is None:
            return None
        return f"id {follower} with the same key was sent after it. {REBUILD}"

    def mark_redelivery(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """The partition, and its end offset before the first attempt."""
        partition = partition_of(message["key"], message["id"], self._count)
        return {"partition": partition, "since": end_of(self.target, partition)}

    def redeliver(self, message: Mapping[str, Any], mark: Mapping[str, Any], lease: Check) -> None:
        """Send it to the end of its partition, unless an earlier attempt has."""
        self._refuse_other_topic()
        changed = self.transformation.apply(message)
        if changed is not None:
            send_after_all(self.target, changed, mark["partition"], mark["since"], lease)

    def refuses_acknowledgement(self, message: Mapping[str, Any]) -> str | None:
        """Refuses a message that is in the topic: it cannot be removed."""
        partition = partition_of(message["key"], message["id"], self._count)
        last_id = find_last_id(self.target, partition)
        if last_id < message["id"]:
            return None
        return (
            f"partition {partition} of {self.declared.topic} is at id {last_id}, so it is in the topic "
            "already. Resume: nothing of it is left to do."
        )

    def _refuse_other_topic(self) -> None:
        if self.topic_id is None:
            return
        found = describe_topic(self.target)
        if found.id != self.topic_id:
            raise TargetReplaced(
                self.pipeline,
                self.name,
                f"topic {self.declared.topic}",
                self.topic_id,
                str(found.id),
                f"it was deleted and made again while it was written to (its id was {self.topic_id} and is "
                f"{found.id}), so a part of what was delivered is not in it",
            )

    @cached_property
    def _count(self) -> int:
        # Cached, and pickled with the writer: parts that are cut for one number of partitions and written for
        # another would leave messages out.
        return self.partitions if self.partitions is not None else count_partitions(self.target)

    @property
    def target(self) -> TargetTopic:
        """Its topic, with the connection."""
        declared = self.declared
        return TargetTopic(self.pipeline, self.name, declared.topic, declared.connection, self.connection)

    def _of_partition(self, number: int, messages: pa.RecordBatch) -> pa.RecordBatch:
        keys, ids = messages["key"].to_pylist(), messages["id"].to_pylist()
        own = [partition_of(key, id_, self._count) == number for key, id_ in zip(keys, ids, strict=True)]
        return messages.filter(pa.array(own, pa.bool_()))


def partition_of(key: bytes | None, id_: int, count: int) -> int:
    """The partition of a message: by its key as Kafka's own producers compute it, without a key by its id."""
    return (id_ if key is None else key_hash(key)) % count
