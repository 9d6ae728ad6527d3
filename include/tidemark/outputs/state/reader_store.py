"""The readers of a writer's output in the control plane, changed by compare-and-set only.

Registering a reader and forgetting times are changes of one object, so one of two at the same time is refused
or judged again: no reader holds a time that was forgotten. An object that does not exist yet has no readers,
and the ``since`` of the first rendition. What has expired is removed by every change of the same rows, so
that readers that crashed leave nothing behind.
"""

from collections.abc import Callable

from tidemark.clock import Clock, wall_clock
from tidemark.consensus.objects import Change, ObjectKey, ObjectKind, Snapshot
from tidemark.consensus.update import update
from tidemark.outputs.model import capability
from tidemark.outputs.model.capability import Capability, Readers
from tidemark.outputs.model.rows import HEAD, changed_rows, reader_row, reader_rows, readers_from_rows
from tidemark.outputs.state.output_store import OutputStore


class ReaderStore:
    """The readers of one writer's output."""

    def __init__(self, outputs: OutputStore, clock: Clock = wall_clock) -> None:
        self.outputs, self.clock = outputs, clock

    @property
    def key(self) -> ObjectKey:
        """The key of the object."""
        return ObjectKey(ObjectKind.READERS, f"{self.outputs.pipeline}/{self.outputs.writer}")

    def load(self) -> Readers:
        """All readers, also those that are expired but not removed yet."""
        return self._readers(self.outputs.consensus.whole(self.key))

    def register(self, one: Capability) -> int:
        """Add a reader; returns ``since`` as it was then.

        Repeating it with the same capability changes nothing. Raises ``Forgotten`` below ``since``.
        """
        return self._change_one(one.reader, lambda readers, _: capability.register(readers, one)).since

    def pin(self, name: str, t: int, who: str) -> Capability:
        """Hold a time without deadline, until it is dropped. Repeating it changes nothing."""
        held = self._change_one(name, lambda readers, _: capability.pin(readers, name, t, who))
        return held.capabilities[name]

    def renew(self, reader: str, term: int) -> Capability:
        """Give a reader a deadline ``term`` (µs) from now, or leave a later one; raises ``ReaderExpired``."""

        def decide(readers: Readers, now: int) -> Readers:
            return capability.renew(readers, reader, now + term, now)

        return self._change_one(reader, decide).capabilities[reader]

    def move_forward(self, reader: str, t: int) -> Capability:
        """Give up a reader's times before ``t``; raises ``ReaderExpired``, and ``CapabilityMovedBack``."""

        def decide(readers: Readers, now: int) -> Readers:
            return capability.move_forward(readers, reader, t, now)

        return self._change_one(reader, decide).capabilities[reader]

    def drop(self, reader: str) -> None:
        """End a reader or a pin. Repeating it changes nothing."""
        self._change_one(reader, lambda readers, _: capability.drop(readers, reader))

    def expire(self) -> list[Capability]:
        """Remove the readers whose deadline and grace have passed; returns them."""
        gone: list[Capability] = []

        def decide(readers: Readers, now: int) -> Readers:
            gone[:] = [one for one in readers.capabilities.values() if one.is_expired_at(now)]
            return capability.expire(readers, now)

        self.change(decide)
        return gone

    def change(self, decide: Callable[[Readers, int], Readers]) -> Readers:
        """Commit what ``decide`` makes of all readers at the present time (µs); returns them.

        An error that it raises leaves them unchanged. Nothing is committed where nothing changes.
        """
        return self._change(None, decide)

    def _change_one(self, reader: str, decide: Callable[[Readers, int], Readers]) -> Readers:
        """As ``change``, with the readers of one row only: enough for a change of one of them."""
        return self._change([HEAD, reader_row(reader)], decide)

    def _change(self, rows: list[str] | None, decide: Callable[[Readers, int], Readers]) -> Readers:
        def attempt(snapshot: Snapshot) -> tuple[Change | None, Readers]:
            now, before = self.clock(), self._readers(snapshot)
            after = decide(before, now)
            if after == before:
                return None, after
            after = capability.expire(after, now)
            return Change(changed_rows(snapshot.rows, reader_rows(after, snapshot.rows))), after

        return update(self.outputs.consensus, self.key, rows, attempt)

    def _readers(self, snapshot: Snapshot) -> Readers:
        pipeline, writer = self.outputs.pipeline, self.outputs.writer
        if snapshot.rows:
            return readers_from_rows(pipeline, writer, snapshot.rows)
        return Readers(pipeline, writer, self.outputs.require().handovers[0].h, {})
