"""The corrected objects once more: each is as it was corrected, or a later operation explains it. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidemark.operations.operation import EventName
from tidemark.oplog.sync.current_objects import CurrentRow
from tidemark.oplog.sync.decisions import CurrentObject
from tidemark.oplog.sync.sending import Settled

MOST_NAMED = 1_000
"""The most objects that a result names."""


@dataclass(frozen=True)
class Verified:
    """The result for some of the corrections.

    Attributes:
        as_sent: How many objects are as they were corrected.
        changed_since: How many have a later operation, which explains what they are.
        missing: How many are neither.
        objects: Some of those, as ``type/id``.
    """

    as_sent: int = 0
    changed_since: int = 0
    missing: int = 0
    objects: tuple[str, ...] = ()

    def __add__(self, other: "Verified") -> "Verified":
        return Verified(
            self.as_sent + other.as_sent,
            self.changed_since + other.changed_since,
            self.missing + other.missing,
            (*self.objects, *other.objects)[:MOST_NAMED],
        )


def verify(settled: Iterable[Settled], current: Mapping[bytes, CurrentRow]) -> Verified:
    """Judge some corrections by the rows that their objects have after them."""
    as_sent = changed = 0
    missing: list[str] = []
    for one in settled:
        row = current.get(one.operation.key)
        if row is None or (row.place[0] == one.place[0] and row.place[1] < one.place[1]):
            missing.append(one.operation.key.decode())
        elif row.place != one.place or not one.is_sent:
            changed += 1
        elif row.object == _as_corrected(one):
            as_sent += 1
        else:
            missing.append(one.operation.key.decode())
    return Verified(as_sent, changed, len(missing), tuple(missing[:MOST_NAMED]))


def _as_corrected(one: Settled) -> CurrentObject:
    operation = one.operation
    return CurrentObject(operation.event is EventName.DELETE, operation.timestamp, operation.parents)
