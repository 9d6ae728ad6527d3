"""Lost offsets: offsets that belong to the log and that Kafka no longer has.

A loss closes the log's gate. A loss that an operator accepts stays on record for ever, because it can no
longer be derived from any data. Nothing here reads Kafka or changes state.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from tidemark.log.model.binding import Available, Binding, Slice, TopicPartition


class LossKind(StrEnum):
    """How offsets were lost.

    Attributes:
        RETENTION: Kafka removed records from the beginning of a partition.
        TRUNCATED: A partition ends below an offset that is bound.
        RECREATED: The topic was deleted and created again under the same name.
        DELETED: The topic does not exist any more.
    """

    RETENTION = "retention"
    TRUNCATED = "truncated"
    RECREATED = "recreated"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Loss:
    """The offsets from ``lower`` (included) to ``upper`` (excluded) of one partition are lost.

    Attributes:
        kind: How they were lost.
        topic: The topic's name.
        partition: The partition's number.
        lower: The first lost offset.
        upper: The offset after the last lost one.
        topic_id: Kafka's id of the topic that has the name now, where it was recreated.
    """

    kind: LossKind
    topic: str
    partition: int
    lower: int
    upper: int
    topic_id: str | None = None

    @property
    def place(self) -> TopicPartition:
        """The Kafka partition."""
        return self.topic, self.partition

    def __str__(self) -> str:
        where, gone = f"{self.topic}/{self.partition}", f"offsets {self.lower} to {self.upper - 1}"
        match self.kind:
            case LossKind.RETENTION:
                return f"{where}: {gone} were removed before their capture"
            case LossKind.TRUNCATED:
                return f"{where}: it ends at {self.lower}, but offsets below {self.upper} are bound already"
            case LossKind.DELETED:
                return f"{where}: the topic is gone, and {gone} were bound but not captured"
            case LossKind.RECREATED if self.lower == self.upper:
                return f"{where}: the topic was deleted and made again; it was read up to offset {self.lower}"
            case LossKind.RECREATED:
                return f"{where}: the topic was deleted and made again before the capture of {gone}"


@dataclass(frozen=True, slots=True)
class AcceptedLoss:
    """A loss that an operator has accepted.

    Attributes:
        loss: The lost offsets.
        t: The binding that owns them; None where they were never bound.
        after: The last id before those of the lost messages.
        who: The operator.
        reason: The operator's reason.
        at: When it was accepted, in µs.
        found: When the gate was closed because of it, in µs: the same offsets can be lost more than once.
        is_planned: Whether the accepted plan listed the consequences for each writer.
        bound_t: For a topic that was deleted or recreated, the time of the last binding of the old topic; 0
            where it has none, None in rows of earlier versions.
        bound_id: Kafka's id of the topic in that binding, where it is known.
    """

    loss: Loss
    t: int | None
    after: int
    who: str
    reason: str
    at: int
    found: int = 0
    is_planned: bool = False
    bound_t: int | None = field(default=None, compare=False)
    bound_id: str | None = field(default=None, compare=False)

    @property
    def row(self) -> str:
        """The name of its row, which makes accepting the same loss again idempotent."""
        loss = self.loss
        return (
            f"lost/{self.t or 0:020d}/{self.found:020d}/{loss.topic}/{loss.partition:010d}/{loss.lower:020d}"
        )

    def to_json(self) -> str:
        """The row in the control plane."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "AcceptedLoss":
        """The accepted loss in a row."""
        row = json.loads(text)
        return cls(**{**row, "loss": loss_from(row["loss"])})


def loss_from(row: Mapping[str, object]) -> Loss:
    """A loss from its JSON form."""
    return Loss(**{**row, "kind": LossKind(str(row["kind"]))})  # type: ignore[arg-type]


def find_losses(
    reached: Mapping[TopicPartition, int], topic_ids: Mapping[str, str], available: Available
) -> Iterator[Loss]:
    """The losses between the bound offsets and what Kafka holds now.

    ``reached`` is the next offset to bind of every partition; ``topic_ids`` are the ids of the bound topics.
    """
    yield from _recreated_unread(reached, topic_ids, available)
    for place, bound in sorted(reached.items()):
        topic, partition = place
        now = available.topic_ids.get(topic)
        known = topic_ids.get(topic)
        if now is not None and known is not None and now != known:
            yield Loss(LossKind.RECREATED, topic, partition, bound, bound, now)
            continue
        offsets = available.offsets.get(place)
        if offsets is None:
            continue
        if offsets.earliest > bound:
            yield Loss(LossKind.RETENTION, topic, partition, bound, offsets.earliest)
        elif offsets.latest < bound:
            yield Loss(LossKind.TRUNCATED, topic, partition, offsets.latest, bound)


def _recreated_unread(
    reached: Mapping[TopicPartition, int], topic_ids: Mapping[str, str], available: Available
) -> Iterator[Loss]:
    """Topics whose recreation was accepted, and that were recreated again before any of their offsets was
    bound.
    """
    read = {topic for topic, _ in reached}
    for topic, partition in sorted(available.offsets):
        now, known = available.topic_ids.get(topic), topic_ids.get(topic)
        if topic not in read and now is not None and known is not None and now != known:
            yield Loss(LossKind.RECREATED, topic, partition, 0, 0, now)


def find_losses_of(
    slices: Sequence[Slice], topic_ids: Mapping[str, str], available: Available
) -> Iterator[Loss]:
    """The losses in slices that are bound and not captured; ``topic_ids`` are the ids of the bound topics."""
    for s in slices:
        now, known = available.topic_ids.get(s.topic), topic_ids.get(s.topic)
        offsets = available.offsets.get((s.topic, s.partition))
        if now is not None and known is not None and now != known:
            yield Loss(LossKind.RECREATED, s.topic, s.partition, s.lower, s.upper, now)
        elif offsets is None:
            yield Loss(LossKind.DELETED, s.topic, s.partition, s.lower, s.upper)
        else:
            if offsets.earliest > s.lower:
                removed = min(offsets.earliest, s.upper)
                yield Loss(LossKind.RETENTION, s.topic, s.partition, s.lower, removed)
            if offsets.latest < s.upper and offsets.earliest < s.upper:
                # The partition may end below the slice: binding continues at that end.
                yield Loss(LossKind.TRUNCATED, s.topic, s.partition, offsets.latest, s.upper)


def ids_of(binding: Binding, loss: Loss) -> tuple[int, int]:
    """The first and last lost id of a binding; a loss by truncation may begin below the binding's slice."""
    lower = next(s.lower for s in binding.slices if (s.topic, s.partition) == loss.place)
    return (
        binding.id_of(*loss.place, max(loss.lower, lower)),
        binding.id_of(*loss.place, loss.upper - 1),
    )


def readable_slices(binding: Binding, accepted: Sequence[AcceptedLoss]) -> tuple[Slice, ...]:
    """The slices of a binding without the offsets whose loss was accepted."""
    lost = sorted((one.loss for one in accepted if one.t == binding.t), key=lambda loss: loss.lower)
    return tuple(remaining for s in binding.slices for remaining in _without(s, lost))


def _without(whole: Slice, losses: Sequence[Loss]) -> Iterator[Slice]:
    lower, upper = whole.lower, whole.upper
    for loss in losses:
        if loss.place != (whole.topic, whole.partition):
            continue
        # A loss touches one end of its slice: retention the beginning, truncation the end.
        if loss.lower <= lower:
            lower = max(lower, loss.upper)
        else:
            upper = min(upper, loss.lower)
    if lower < upper:
        yield Slice(whole.topic, whole.partition, lower, upper)


def reached_after(
    reached: Mapping[TopicPartition, int], topic_ids: Mapping[str, str], losses: Sequence[Loss]
) -> tuple[dict[TopicPartition, int], dict[str, str]]:
    """The next offset to bind of every partition, and the ids of the topics, after the losses are
    accepted.
    """
    offsets, ids = dict(reached), dict(topic_ids)
    for loss in losses:
        match loss.kind:
            case LossKind.RETENTION:
                offsets[loss.place] = max(offsets.get(loss.place, 0), loss.upper)
            case LossKind.TRUNCATED:
                offsets[loss.place] = min(offsets.get(loss.place, loss.lower), loss.lower)
            case LossKind.RECREATED | LossKind.DELETED:
                # The next topic of this name is bound from its beginning. Where the id of the accepted topic
                # is known, it is kept, so that another recreation is noticed.
                offsets = {place: offset for place, offset in offsets.items() if place[0] != loss.topic}
                ids.pop(loss.topic, None)
                if loss.topic_id is not None:
                    ids[loss.topic] = loss.topic_id
    return offsets, ids


def describe_losses(losses: Sequence[Loss], most: int = 3) -> str:
    """The first ``most`` losses as text, and the number of further ones."""
    more = f"; and {len(losses) - most} more" if len(losses) > most else ""
    return "; ".join(str(loss) for loss in losses[:most]) + more
