"""The second pass: rewrites a group of adjacent files as one, without the dropped messages.

Kept messages are copied unchanged. The new file gets its final name at once, which no manifest contains yet.
The same group always gives the same name and bytes, so the pass is idempotent.
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


class _Range:
    """The first and last id and time of the messages that are written to a file."""

    def __init__(self) -> None:
        self.first_id = self.last_id = self.first_t = self.t = -1

    def watch(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the batches unchanged, and record their range."""
        for batch in batches:
            ids, times = batch["id"], batch["t"]
            if self.first_id < 0:
                self.first_id, self.first_t = ids[0].as_py(), times[0].as_py()
            # Ids ascend with the bindings' times, so the last message has the latest time.
            self.last_id, self.t = ids[-1].as_py(), times[-1].as_py()
            yield batch


def rewrite_group(place: Workplace, rules: CompactionRules, group: FileGroup) -> LogFile | None:
    """Write the group's file; None where no message is kept."""
    if not group.kept:
        return None
    passing = _Range()
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
    """The messages of a group that are kept, unchanged and in id order."""
    for file in group.files:
        dropped = _dropped(place, rules, file)
        for batch in place.log.read_file(file):
            kept = batch.filter(pa.array(~_among(batch["id"].to_numpy(), dropped)))
            if kept.num_rows:
                yield kept


def differing_ids(place: Workplace, rules: CompactionRules, group: FileGroup, output: LogFile | None) -> int:
    """The number of ids that are missing in the new file or too many; refuses a damaged file."""
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
    """Which ids are dropped. Both arrays are sorted, so only the overlapping range is compared."""
    low, high = np.searchsorted(dropped, [ids[0], ids[-1] + 1])
    return np.isin(ids, dropped[low:high], assume_unique=True)
