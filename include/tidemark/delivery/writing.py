"""What a writer is given and what it returns: parts of a binding, messages, counts, digests, its own past.

Plain values. ``delivery.writer`` exports them again for writers of other packages.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.delivery.split_entities import Begun
from tidemark.log.model.binding import Binding, TopicPartition
from tidemark.log.model.manifest import LogFile
from tidemark.outputs.model.digest import ShardDigest

Messages = TypeVar("Messages", pa.RecordBatch, pa.Table)


@dataclass(frozen=True, slots=True)
class Part:
    """The share of a binding that one task writes.

    Attributes:
        binding: The binding that it belongs to.
        files: The log files that may hold its messages.
        number: The part of the target that it is for, where the writer numbers them; None for all.
        first_id: The lowest id of the part.
        last_id: The highest id of the part; None for the binding's end.
    """

    binding: Binding
    files: tuple[LogFile, ...]
    number: int | None = None
    first_id: int = 0
    last_id: int | None = None

    @property
    def ids(self) -> tuple[int, int]:
        """The first and the last id, both included, within the binding."""
        last = self.binding.end if self.last_id is None else min(self.last_id, self.binding.end)
        return max(self.first_id, self.binding.base), last

    @property
    def most(self) -> int:
        """The most messages that it can have."""
        return sum(file.most(*self.ids) for file in self.files)

    @property
    def is_whole(self) -> bool:
        """Whether it covers every id of the binding."""
        return self.first_id <= self.binding.base and self.last_id is None


@dataclass(frozen=True, slots=True)
class Written:
    """Counts of one part, or of several. Every message is counted exactly once.

    Attributes:
        written: Messages that are durable in the target.
        filtered: Messages that the writer's ``namespaces`` keep out.
        ignored: Messages that are not written for another reason: nothing to write for this kind of writer,
            dropped by a transform, acknowledged by an operator, or in the target already.
        details: Further counts that only this kind of writer has, by name.
        begun: The entities whose first event this part wrote, where they must not begin in another Kafka
            partition too.
        digests: The digests of the rows that the messages make, by shard, for kinds with a ``timed_output``;
            empty for other kinds. They depend on the messages alone, also where the rows were there already.
    """

    written: int = 0
    filtered: int = 0
    ignored: int = 0
    details: Mapping[str, int] = field(default_factory=dict)
    begun: tuple[Begun, ...] = ()
    digests: tuple[ShardDigest, ...] = ()

    def __add__(self, other: "Written") -> "Written":
        names = {**self.details, **other.details}
        return Written(
            self.written + other.written,
            self.filtered + other.filtered,
            self.ignored + other.ignored,
            {name: self.details.get(name, 0) + other.details.get(name, 0) for name in names},
            self.begun + other.begun,
            _sum(self.digests, other.digests),
        )


def _sum(one: tuple[ShardDigest, ...], other: tuple[ShardDigest, ...]) -> tuple[ShardDigest, ...]:
    if not one or not other:
        return one or other
    return tuple(first + second for first, second in zip(one, other, strict=True))


class Check(Protocol):
    """A lease that a writer can check while it writes."""

    def check(self) -> None:
        """Raise where another process has taken the lease over."""


@dataclass(frozen=True, slots=True)
class Writing:
    """The messages of a part, and the lease under which they are written.

    Attributes:
        batches: The messages in id order, without those that an operator has acknowledged. Can be iterated
            once.
        lease: The lease. Its ``check`` is called before every batch of writes that the target does not fence
            itself.
    """

    batches: Iterable[pa.RecordBatch]
    lease: Check


@dataclass(frozen=True, slots=True)
class TimedOutput:
    """An output that readers can read as of any time, as its writer declares it.

    Attributes:
        shards: In how many shards its digests are.
    """

    shards: int


@dataclass(frozen=True, slots=True)
class Past:
    """What the control plane has recorded about a writer before a binding is written.

    Attributes:
        position: The writer's position.
        reached: The highest position it ever had.
        offsets: The last offset bound before this binding, of those of its partitions that were bound before.
        theirs: The pointers that another replicator had written when its tables were last taken over.
    """

    position: int
    reached: int
    offsets: Mapping[TopicPartition, int]
    theirs: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Later:
    """The messages that a writer has finished after one that was acknowledged.

    Attributes:
        is_whole: Whether the log still has all of them: compaction may have removed some.
        batches: Reads them: the columns ``id``, ``topic``, ``key`` and ``namespace``, without other
            acknowledged messages.
    """

    is_whole: bool
    batches: Callable[[], Iterable[pa.RecordBatch]]

    def first_of(self, key: bytes | None, admits: Callable[[Mapping[str, Any]], bool]) -> int | None:
        """The id of the first later message with this key that ``admits`` accepts; None where there is
        none."""
        if key is None:
            return None
        for batch in self.batches():
            same = batch.filter(pc.equal(batch["key"], pa.scalar(key, pa.binary())))
            for message in same.to_pylist():
                if admits(message):
                    return int(message["id"])
        return None


def admit(messages: Messages, namespaces: re.Pattern[str]) -> Messages:
    """The messages in whose namespace the expression is found."""
    if namespaces.pattern == ".*":
        return messages
    names = pc.unique(messages["namespace"]).to_pylist()
    admitted = [name for name in names if namespaces.search(name)]
    return messages.filter(pc.is_in(messages["namespace"], value_set=pa.array(admitted, pa.string())))
