"""The second pass: a group of neighbouring files becomes one, without what is dropped.

A message that stays is copied as it is. The new file gets its final name, which nobody knows yet; the same
group gives the same name and bytes whoever writes it.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidemark.compaction.plan import FileGroup
from tidemark.compaction.policies.rules import CompactionRules
from tidemark.compaction.staging import Workplace
from tidemark.faults import FaultPoint, reach
from tidemark.log.files.parquet import write_parquet
from tidemark.log.model.manifest import LogFile


class _Passing:
    """What passes through on its way into a file."""

    def __init__(self) -> None:
        self.first_id = self.last_id = self.first_t = self.t = -1

    def watch(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches."""
        for batch in batches:
            ids, times = batch["id"], batch["t"]
            if self.first_id < 0:
                self.first_id, self.first_t = ids[0].as_py(), times[0].as_py()
            # Ids grow with the bindings' times, so the last message is of the newest one.
            self.last_id, self.t = ids[-1].as_py(), times[-1].as_py()
            yield batch


def rewrite_group(place: Workplace, rules: CompactionRules, group: FileGroup) -> LogFile | None:
    """Write the group's file; None when nothing of it stays."""
    if not group.kept:
        return None
    passing = _Passing()
    with place.folder.stage(place.area) as staged:
        count = write_parquet(staged.sink, passing.watch(kept_messages(place, rules, group)))
        path = f"files/{passing.first_id:020d}-{passing.last_id:020d}-{place.plan[:12]}.parquet"
        staged.settle(path)
        reach(FaultPoint.COMPACT_FILE_STAGED)
    reach(FaultPoint.COMPACT_FILE_NAMED)
    first = group.files[0]
    return LogFile(
        path,
        passing.t,
        first.topic,
        first.partition,
        passing.first_id,
        passing.last_id,
        count,
        staged.sink.size,
        staged.sink.digest,
        passing.first_t,
    )


def kept_messages(place: Workplace, rules: CompactionRules, group: FileGroup) -> Iterator[pa.RecordBatch]:
    """The messages of a group that stay, in id order, as they are."""
    for file in group.files:
        dropped = _dropped(place, rules, file)
        for batch in place.log.read_file(file):
            kept = batch.filter(pa.array(~_among(batch["id"].to_numpy(), dropped)))
            if kept.num_rows:
                yield kept


def differing_ids(place: Workplace, rules: CompactionRules, group: FileGroup, output: LogFile | None) -> int:
    """How many ids are in the group without what is dropped or in its file, but not in both."""
    wanted = [np.empty(0, np.int64)]
    for file in group.files:
        dropped = _dropped(place, rules, file)
        for batch in place.log.read_file(file, ["id"]):
            ids = batch["id"].to_numpy()
            wanted.append(ids[~_among(ids, dropped)])
    found = [np.empty(0, np.int64)]
    if output is not None:
        place.log.verify(output)
        place.log.verify_range(output)
        found += [batch["id"].to_numpy() for batch in place.log.read_file(output, ["id"])]
    return len(np.setxor1d(np.concatenate(wanted), np.concatenate(found), assume_unique=True))


def _dropped(place: Workplace, rules: CompactionRules, file: LogFile) -> NDArray[np.int64]:
    return place.dropped(file) if rules.is_eligible(file) else np.empty(0, np.int64)


def _among(ids: NDArray[np.int64], dropped: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which ids are dropped; both are in order, so only those of the same range are compared."""
    low, high = np.searchsorted(dropped, [ids[0], ids[-1] + 1])
    return np.isin(ids, dropped[low:high], assume_unique=True)
