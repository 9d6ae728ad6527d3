"""A kafka writer's output partition without Kafka: a list of the ids that were committed."""

from typing import ClassVar


class MemoryPartition:
    """Stands in for a partition."""

    holds: ClassVar[dict[int, list[int]]] = {}
    opened: ClassVar[list[int]] = []
    closed: ClassVar[list[int]] = []

    def __init__(self, target, partition):
        self.partition, self.waiting = partition, []
        self.opened.append(partition)
        self.last_id = max(self.holds.get(partition, []), default=-1)

    def add(self, message, lease):
        self.waiting.append(message["id"])

    def commit(self, lease):
        if self.waiting:
            lease.check()
            self.holds.setdefault(self.partition, []).extend(self.waiting)
            self.last_id, self.waiting = self.waiting[-1], []

    def close(self):
        self.closed.append(self.partition)
