"""The commit log of the topic, as an agent's streams read it, where it is whole; and what was bound when.

Reads the bindings, newest first, as far back as an offset lies; then the files with the ids from there on. A
part of the log that was compacted, or of which a loss was accepted, is not given out: it is not exact.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import pyarrow as pa
import pyarrow.compute as pc

from tidemark.kafka.errors import OffsetGone
from tidemark.log.bindings.door import Bindings
from tidemark.log.errors import CompactedAway
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import Binding, Slice
from tidemark.log.model.loss import AcceptedLoss
from tidemark.log.model.manifest import Manifest
from tidemark.log.model.recreated_topics import Recreations
from tidemark.log.publish import read_log, read_manifest
from tidemark.log.read import select
from tidemark.log.state.control import LogControl
from tidemark.log.state.readers import reading_log
from tidemark.oplog.agent.streams.sources.logged_topic import MissedTimes
from tidemark.oplog.model.judged_operations import LookBack, LookedBack, TopicRecord
from tidemark.oplog.model.resume_plan import LoggedOffsets

COLUMNS = ("partition", "offset", "key", "value", "headers")
READER = "oplog agent"


@dataclass(slots=True)
class _Reached:
    """How far the log of one partition goes back from its end."""

    lower: int
    end: int
    first_id: int
    """The id of the first offset that is wanted, or of the lowest one that was found."""


class LoggedBindings:
    """``LoggedTopic`` in the commit log. Threads may share it."""

    def __init__(
        self,
        control: Callable[[], LogControl],
        folder: LogFolder,
        topic: str,
        topic_id: str,
        partitions: int,
    ) -> None:
        """The log of a topic under one id; what it has of an earlier topic of the same name is left out.

        ``control`` connects: on first use, because live streams need no log.
        """
        self._connect, self._folder = control, folder
        self._topic, self._topic_id, self._partitions = topic, topic_id, partitions
        self._lock = Lock()
        self._known_ends: tuple[int, tuple[int | None, ...]] | None = None

    @cached_property
    def _control(self) -> LogControl:
        return self._connect()

    def offsets(self, starts: Mapping[int, int]) -> Mapping[int, LoggedOffsets]:
        """See ``LoggedTopic.offsets``."""
        found = self._reached(read_log(self._control, self._folder), starts)
        return {number: LoggedOffsets(one.lower, one.end) for number, one in found.items()}

    @contextmanager
    def records(self, starts: Mapping[int, int]) -> Iterator[tuple[Iterator[TopicRecord], Mapping[int, int]]]:
        """See ``LoggedTopic.records``. Raises ``OffsetGone`` where some of them are not there any more."""
        with reading_log(self._control, READER) as reading:
            head = reading.take_up()
            manifest = read_manifest(self._control.pipeline, self._folder, head)
            found = self._reached(manifest, starts)
            if any(number not in found or found[number].lower > at for number, at in starts.items()):
                raise OffsetGone(f"{self._topic}: the log has not everything from {dict(starts)} on")
            ends = {number: one.end for number, one in found.items()}
            first_id = min(one.first_id for one in found.values())
            yield self._read(manifest, first_id, starts, ends), ends

    def look_back(self, wanted: LookBack) -> LookedBack:
        """See ``LoggedTopic.look_back``."""
        number = wanted.partition
        found = self.offsets({number: wanted.first}).get(number)
        if found is None or found.first > wanted.needed or found.end < wanted.end:
            raise OffsetGone(f"{self._topic}/{number}: offset {wanted.needed} is not in the log")
        first = max(found.first, wanted.first)
        with self.records({number: first}) as (records, _):
            return LookedBack.of(first, (one for one in records if one.offset < wanted.end))

    def ends_at(self, t: int) -> Sequence[int | None]:
        """See ``LoggedTopic.ends_at``. What was found is remembered: later times need newer bindings only."""
        with self._lock:
            known = self._known_ends
            if known is not None and known[0] <= t:
                ends, newest = list(known[1]), known[0]
                for binding in self._door.younger(known[0]):
                    if binding.t > t:
                        break
                    newest = binding.t
                    for one in self._slices(binding):
                        ends[one.partition] = one.upper
                found = tuple(ends)
            else:
                newest, found = t, self._search_ends(t)
            if known is None or newest >= known[0]:
                self._known_ends = newest, found
            return found

    def missed(self, beyond: Sequence[int | None]) -> MissedTimes:
        """See ``LoggedTopic.missed``."""
        left = {number: at for number, at in enumerate(beyond) if at is not None}
        times: dict[int, int] = {}
        newest = 0
        for binding in self._door.before():
            newest = max(newest, binding.t)
            if not self._is_ours(binding):
                break
            for one in self._slices(binding):
                at = left.get(one.partition)
                if at is not None:
                    if one.upper > at:
                        times[one.partition] = binding.t
                    if one.lower <= at:
                        del left[one.partition]
            if not left:
                break
        if not times:
            return MissedTimes(newest, newest)
        return MissedTimes(min(times.values()) - 1, max(times.values()))

    def _search_ends(self, t: int) -> tuple[int | None, ...]:
        found: list[int | None] = [None] * self._partitions
        for binding in self._door.before(t + 1):
            if not self._is_ours(binding):
                break
            for one in self._slices(binding):
                if found[one.partition] is None:
                    found[one.partition] = one.upper
            if None not in found:
                break
        return tuple(found)

    def _reached(self, manifest: Manifest, starts: Mapping[int, int]) -> dict[int, _Reached]:
        """How far the published log goes back without a gap, for each partition that it has."""
        lost = self._lost()
        left = {number: at for number, at in starts.items() if lost.get(number, 0) <= at}
        found: dict[int, _Reached] = {}
        for binding in self._door.before(manifest.t + 1) if left else ():
            if not self._is_ours(binding) or binding.base < manifest.compacted_below:
                break
            for one in self._slices(binding):
                at = left.get(one.partition)
                if at is None:
                    continue
                id_ = binding.id_of(one.topic, one.partition, min(max(one.lower, at), one.upper - 1))
                known = found.get(one.partition)
                if known is None:
                    found[one.partition] = _Reached(one.lower, one.upper, id_)
                elif known.lower == one.upper:
                    known.lower, known.first_id = one.lower, id_
                else:
                    del left[one.partition]
                    continue
                if one.lower <= at:
                    del left[one.partition]
            if not left:
                break
        return found

    def _lost(self) -> dict[int, int]:
        """By partition: the offset after the last loss that was accepted."""
        losses = self._control.accepted_losses()
        recreations = Recreations.of(losses)
        found: dict[int, int] = {}
        for one in losses:
            if self._is_current(one, recreations):
                place = one.loss.partition
                found[place] = max(one.loss.upper, found.get(place, 0))
        return found

    def _is_current(self, lost: AcceptedLoss, recreations: Recreations) -> bool:
        topic = lost.loss.topic
        return topic == self._topic and recreations.number_of(lost) == recreations.newest(topic)

    def _read(
        self, manifest: Manifest, first_id: int, starts: Mapping[int, int], ends: Mapping[int, int]
    ) -> Iterator[TopicRecord]:
        try:
            for batch in select(manifest, self._folder.root, first_id=first_id).batches(COLUMNS):
                yield from _records(batch, starts, ends)
        except CompactedAway as error:
            raise OffsetGone(str(error)) from error

    @property
    def _door(self) -> Bindings:
        return Bindings(self._control, self._folder)

    def _is_ours(self, binding: Binding) -> bool:
        """Whether a binding is of this topic, and not of an earlier one of its name."""
        return binding.topic_ids.get(self._topic, self._topic_id) == self._topic_id

    def _slices(self, binding: Binding) -> Iterator[Slice]:
        return (
            one for one in binding.slices if one.topic == self._topic and one.partition < self._partitions
        )


def _records(
    batch: pa.RecordBatch, starts: Mapping[int, int], ends: Mapping[int, int]
) -> Iterator[TopicRecord]:
    """The records of the wanted partitions from where they are wanted."""
    wanted = batch.filter(pc.is_in(batch.column("partition"), pa.array(starts, pa.int32())))
    for partition, offset, key, value, headers in zip(
        *(wanted.column(name).to_pylist() for name in COLUMNS), strict=True
    ):
        if starts[partition] <= offset < ends[partition]:
            pairs = [(one["name"], one["value"]) for one in headers or ()]
            yield TopicRecord(partition, offset, key, value, pairs)
