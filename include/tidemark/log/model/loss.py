"""Offsets that belong to the log and that Kafka no longer has: found, said, and accepted by a person.

A loss is never passed over: it closes the log's gate. Accepted, it stays on record for ever, because what
was lost can be proved by nobody. Nothing here asks Kafka or changes anything.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from tidemark.log.model.binding import Available, Binding, Slice, TopicPartition


class LossKind(StrEnum):
    """How offsets that belong to the log can be gone."""

    RETENTION = "retention"
    TRUNCATED = "truncated"
    RECREATED = "recreated"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Loss:
    """Offsets ``lower`` up to ``upper`` (not included) of one partition are gone."""

    kind: LossKind
    topic: str
    partition: int
    lower: int
    upper: int
    topic_id: str | None = None
    """The id of the topic that has the name now, where that is another one."""

    @property
    def place(self) -> TopicPartition:
        """Which Kafka partition."""
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
    """A loss that a named person has accepted."""

    loss: Loss
    t: int | None
    """The binding that had bound the offsets; None when they were never bound."""
    after: int
    """The last id before the place where the messages would have been."""
    who: str
    reason: str
    at: int
    """When it was accepted, in µs."""
    found: int = 0
    """When the gate closed over it, in µs: the same offsets can be lost more than once."""
    is_planned: bool = False
    """Whether the plan that was accepted said what becomes of each writer."""

    @property
    def row(self) -> str:
        """The name of its row: accepting the same loss again writes the same one."""
        loss = self.loss
        return (
            f"lost/{self.t or 0:020d}/{self.found:020d}/{loss.topic}/{loss.partition:010d}/{loss.lower:020d}"
        )

    def to_json(self) -> str:
        """The row as the control plane keeps it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "AcceptedLoss":
        """The loss a row holds."""
        row = json.loads(text)
        return cls(**{**row, "loss": loss_from(row["loss"])})


def loss_from(row: Mapping[str, object]) -> Loss:
    """A loss from its JSON form."""
    return Loss(**{**row, "kind": LossKind(str(row["kind"]))})  # type: ignore[arg-type]


def find_losses(
    reached: Mapping[TopicPartition, int], topic_ids: Mapping[str, str], available: Available
) -> Iterator[Loss]:
    """What is gone between what is bound and what Kafka holds now."""
    yield from _made_again_unread(reached, topic_ids, available)
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


def _made_again_unread(
    reached: Mapping[TopicPartition, int], topic_ids: Mapping[str, str], available: Available
) -> Iterator[Loss]:
    """Topics that were accepted as made again, and made again once more before anything of them was bound."""
    read = {topic for topic, _ in reached}
    for topic, partition in sorted(available.offsets):
        now, known = available.topic_ids.get(topic), topic_ids.get(topic)
        if topic not in read and now is not None and known is not None and now != known:
            yield Loss(LossKind.RECREATED, topic, partition, 0, 0, now)


def find_losses_of(
    slices: Sequence[Slice], topic_ids: Mapping[str, str], available: Available
) -> Iterator[Loss]:
    """What is gone of slices that are bound and not captured; the topics had these ids."""
    for s in slices:
        now, known = available.topic_ids.get(s.topic), topic_ids.get(s.topic)
        offsets = available.offsets.get((s.topic, s.partition))
        if now is not None and known is not None and now != known:
            yield Loss(LossKind.RECREATED, s.topic, s.partition, s.lower, s.upper, now)
        elif offsets is None:
            yield Loss(LossKind.DELETED, s.topic, s.partition, s.lower, s.upper)
        else:
            if offsets.earliest > s.lower:
                gone = min(offsets.earliest, s.upper)
                yield Loss(LossKind.RETENTION, s.topic, s.partition, s.lower, gone)
            if offsets.latest < s.upper and offsets.earliest < s.upper:
                # Its end may be below the slice: that is where the source has to go on.
                yield Loss(LossKind.TRUNCATED, s.topic, s.partition, offsets.latest, s.upper)


def ids_of(binding: Binding, loss: Loss) -> tuple[int, int]:
    """First and last id the binding owns of what is lost: a truncated partition may end below its slice."""
    lower = next(s.lower for s in binding.slices if (s.topic, s.partition) == loss.place)
    return (
        binding.id_of(*loss.place, max(loss.lower, lower)),
        binding.id_of(*loss.place, loss.upper - 1),
    )


def readable_slices(binding: Binding, accepted: Sequence[AcceptedLoss]) -> tuple[Slice, ...]:
    """The offsets of a binding that can still be read; what a person accepted as lost is left out."""
    lost = sorted((one.loss for one in accepted if one.t == binding.t), key=lambda loss: loss.lower)
    return tuple(left for s in binding.slices for left in _without(s, lost))


def _without(whole: Slice, losses: Sequence[Loss]) -> Iterator[Slice]:
    lower, upper = whole.lower, whole.upper
    for loss in losses:
        if loss.place != (whole.topic, whole.partition):
            continue
        # A loss reaches one end of its slice: retention takes the beginning, truncation the end.
        if loss.lower <= lower:
            lower = max(lower, loss.upper)
        else:
            upper = min(upper, loss.lower)
    if lower < upper:
        yield Slice(whole.topic, whole.partition, lower, upper)


def reached_after(
    reached: Mapping[TopicPartition, int], topic_ids: Mapping[str, str], losses: Sequence[Loss]
) -> tuple[dict[TopicPartition, int], dict[str, str]]:
    """How far the source is bound, and which topics these are, once the losses are accepted."""
    offsets, ids = dict(reached), dict(topic_ids)
    for loss in losses:
        match loss.kind:
            case LossKind.RETENTION:
                offsets[loss.place] = max(offsets.get(loss.place, 0), loss.upper)
            case LossKind.TRUNCATED:
                offsets[loss.place] = min(offsets.get(loss.place, loss.lower), loss.lower)
            case LossKind.RECREATED | LossKind.DELETED:
                # From its beginning, whenever there is a topic of that name; where it is known which one was
                # accepted, yet another one is noticed.
                offsets = {place: offset for place, offset in offsets.items() if place[0] != loss.topic}
                ids.pop(loss.topic, None)
                if loss.topic_id is not None:
                    ids[loss.topic] = loss.topic_id
    return offsets, ids


def said(losses: Sequence[Loss], most: int = 3) -> str:
    """The losses in one phrase, however many partitions have some."""
    more = f"; and {len(losses) - most} more" if len(losses) > most else ""
    return "; ".join(str(loss) for loss in losses[:most]) + more
