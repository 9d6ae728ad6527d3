"""merge: small files of closed segments become larger ones, whatever the pipeline's policy.

The machinery of compaction with nothing dropped: ids and bytes of all messages stay, and so do the marks of
earlier compactions. Runs without Spark, under the log's lease, a bounded amount of work at a time. Files,
their proof and the lists are made before the swap. A compaction's plan that waits for approval is left alone:
only segments above it are merged meanwhile.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tidemark.clock import Clock, wall_clock
from tidemark.compaction.engine import InProcess, outputs_by_group
from tidemark.compaction.errors import NotConserved
from tidemark.compaction.exchange import exchange_of, list_digest
from tidemark.compaction.merging.choice import MergeWork, WorkLimit, choose_work, settled_by
from tidemark.compaction.plan import CompactionPlan, FileGroup, merged_groups
from tidemark.compaction.plan_files import Plans
from tidemark.compaction.policies.rules import CompactionRules, question_digest
from tidemark.compaction.proof import prove_outputs
from tidemark.compaction.staging import Workplace
from tidemark.compaction.watermark import Watermark
from tidemark.consensus.lease_holder import holding
from tidemark.faults import FaultPoint, reach
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.manifest import LogFile, Manifest, Segment
from tidemark.log.publish import read_log, read_manifest
from tidemark.log.state.control import LogControl, LogHead
from tidemark.log.state.lease import LogHeld, LogHold, read_lease, take_log
from tidemark.log.sweep import PLAN_LIFE

KEEPS_EVERYTHING = "none"
DEFAULT_LIMIT = WorkLimit()


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge.

    Attributes:
        files_before: The number of files that were merged.
        files_after: The number of files that they became.
        segments_before: The number of segments that were merged.
        segments_after: The number of segments that they became.
        bytes_written: The size of the new files.
        held_by: The holder of the log's lease, where nothing was done because of it; else None.
    """

    files_before: int = 0
    files_after: int = 0
    segments_before: int = 0
    segments_after: int = 0
    bytes_written: int = 0
    held_by: str | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether nothing was merged."""
        return self.files_before == 0

    def __add__(self, other: "Merged") -> "Merged":
        """The result of both, one after the other."""
        return Merged(
            self.files_before + other.files_before,
            self.files_after + other.files_after,
            self.segments_before + other.segments_before,
            self.segments_after + other.segments_after,
            self.bytes_written + other.bytes_written,
            other.held_by,
        )


@dataclass(frozen=True, slots=True)
class _Task:
    """One merge: the work, the groups of files of each of its new segments, and all of them as a plan."""

    work: MergeWork
    segments: tuple[tuple[LogFile, ...], ...]
    plan: CompactionPlan

    def new_segments(self, outputs: Sequence[LogFile]) -> list[Segment]:
        """The new segments: the new files, and those that were left alone."""
        written = {}
        for number, file in outputs_by_group(self.plan, outputs).items():
            for one in self.plan.groups[number].files:
                written[one.path] = file
        made = []
        for files in self.segments:
            own = {written.get(file.path, file).path: written.get(file.path, file) for file in files}
            made.append(Segment(tuple(sorted(own.values(), key=lambda file: file.first_id))))
        return made


class _Abandoned(Exception):
    """The process was asked to stop in the middle of a merge."""


@dataclass(frozen=True)
class Merging:
    """Merges the small files of one log. A process that does it repeatedly keeps one of these.

    Attributes:
        segment_bytes: The greatest size of a merged file, and of a segment of merged files.
    """

    control: LogControl
    root: str
    segment_bytes: int
    clock: Clock = wall_clock
    _settled: set[str] = field(default_factory=set)

    def look(self, limit: WorkLimit = DEFAULT_LIMIT) -> Merged:
        """What the next merge would do; sizes are estimated. Takes no lease and changes nothing."""
        task = self._choose(read_log(self.control, self._log), limit)
        if task is None:
            return Merged()
        groups, leaves = task.plan.groups, task.work.leaves
        size = sum(group.bytes for group in groups)
        return Merged(len(task.plan.inputs), len(groups), len(leaves), len(task.segments), size)

    def merge(
        self, holder: str, limit: WorkLimit = DEFAULT_LIMIT, is_over: Callable[[], bool] = lambda: False
    ) -> Merged:
        """Do the next merge. Where there is none, takes no lease; where the log is held, does not wait, but
        for the merge of a follow.

        ``is_over`` is asked before each group of files: the merge is abandoned then, as if it had been killed
        before anything was published. The next one finishes it.
        """
        if self._choose(read_log(self.control, self._log), limit) is None:
            return Merged()
        try:
            hold = take_log(self.control, holder, self.clock)
        except LogHeld as held:
            return Merged(held_by=held.lease.holder)
        with holding(hold):
            reach(FaultPoint.MERGE_LEASED)
            current = read_log(self.control, self._log)
            task = self._choose(current, limit)
            try:
                return Merged() if task is None else self._carry_out(current, task, hold, is_over)
            except _Abandoned:
                return Merged()

    def merge_all(self, holder: str, limit: WorkLimit = DEFAULT_LIMIT) -> Merged:
        """Merge until there is nothing left to merge, or until another process holds the log."""
        total = Merged()
        while not (done := self.merge(holder, limit)).is_nothing:
            total += done
        return replace(total, held_by=done.held_by)

    def _carry_out(
        self, current: Manifest, task: _Task, hold: LogHold, is_over: Callable[[], bool]
    ) -> Merged:
        def go_on() -> None:
            if is_over():
                raise _Abandoned

        plan = task.plan
        # From now on the sweep does not take the new files for orphans.
        hold.record_merge(plan.digest)
        reach(FaultPoint.MERGE_RECORDED)
        place, engine = Workplace(self.control.pipeline, self.root, plan.digest), InProcess(go_on)
        outputs = engine.rewrite(place, plan)
        reach(FaultPoint.MERGE_FILES_WRITTEN)
        self._prove(place, engine, plan, outputs, go_on)
        reach(FaultPoint.MERGE_VERIFIED)
        exchange = exchange_of(plan.digest, task.work.leaves, task.new_segments(outputs))
        exchange = replace(exchange, new=self._log.write_lists(exchange.new, current.t, plan.digest))
        reach(FaultPoint.MERGE_LISTS_WRITTEN)
        made: dict[str | None, LogHead] = {}

        def rebase(head: LogHead) -> LogHead:
            if head.manifest not in made:  # else only other rows of the log object have changed
                after = exchange.apply(read_manifest(self.control.pipeline, self._log, head))
                path, digest = self._log.write_manifest(after, plan.digest)
                reach(FaultPoint.MERGE_MANIFEST_WRITTEN)
                made[head.manifest] = LogHead.naming(after, path, digest, self._log.root)
            return made[head.manifest]

        hold.replace_merged(rebase)
        reach(FaultPoint.MERGE_COMMITTED)
        place.remove()
        self._settled.update(list_digest(leaf) for leaf in exchange.new)
        return Merged(
            len(plan.inputs),
            len(outputs),
            len(task.work.leaves),
            len(exchange.new),
            sum(file.bytes for file in outputs),
        )

    def _prove(
        self,
        place: Workplace,
        engine: InProcess,
        plan: CompactionPlan,
        outputs: Sequence[LogFile],
        go_on: Callable[[], None],
    ) -> None:
        """Raise ``NotConserved`` where a message is missing, too many, or not the same in every column."""
        by_group = outputs_by_group(plan, outputs)
        expected = {group.name: group.kept for group in plan.groups}
        written = {plan.groups[number].name: file.count for number, file in by_group.items()}
        differences = engine.count_differences(place, plan, outputs)
        prove_outputs(self.control.pipeline, plan.digest, expected, written, differences)
        for number, group in enumerate(plan.groups):
            go_on()
            if not has_same_messages(place, group, by_group[number]):
                raise NotConserved(self.control.pipeline, plan.digest, f"{group.name}: messages were changed")

    def _choose(self, manifest: Manifest, limit: WorkLimit) -> _Task | None:
        first_free = self._planned_below()
        leaves = [leaf for leaf in manifest.leaves() if leaf.first_id >= first_free]
        while work := choose_work(leaves, self.segment_bytes, limit, self._settled):
            task = self._task(manifest, work)
            if not task.plan.is_empty:
                return task
            self._settled.update(settled_by(work))
        return None

    def _task(self, manifest: Manifest, work: MergeWork) -> _Task:
        segments = tuple(
            tuple(file for leaf in group for file in manifest.segment_of(leaf).files) for group in work.groups
        )
        groups = tuple(one for files in segments for one in merged_groups(files, self.segment_bytes))
        rules = CompactionRules(KEEPS_EVERYTHING, 0, self.segment_bytes)
        inputs = [file for group in groups for file in group.files]
        digest = question_digest(manifest.pipeline, inputs, rules)
        plan = CompactionPlan(
            manifest.pipeline, digest, manifest.t, rules, Watermark(0, ()), manifest.end + 1, (), groups, ()
        )
        return _Task(work, segments, plan)

    def _planned_below(self) -> int:
        """The id from which on no plan of a compaction needs the segments as they are."""
        digest = read_lease(self.control).plan
        plans = Plans(self.control.pipeline, self.root)
        if digest is None or not plans.has(digest):
            return 0
        plan = plans.read(digest)
        return plan.active_from if plan.now + PLAN_LIFE > self.clock() else 0

    @property
    def _log(self) -> LogFolder:
        return LogFolder(self.control.pipeline, self.root)


def merge_small_files(
    control: LogControl,
    root: str,
    segment_bytes: int,
    holder: str,
    limit: WorkLimit = DEFAULT_LIMIT,
    clock: Clock = wall_clock,
) -> Merged:
    """Do the next merge of a log's small files: a bounded amount of work, without Spark.

    Does nothing where another process holds the log: ``held_by`` of the result names it.
    """
    return Merging(control, root, segment_bytes, clock).merge(holder, limit)


def has_same_messages(place: Workplace, group: FileGroup, output: LogFile) -> bool:
    """Whether a file has exactly the messages of a group of files: all columns, in the same order."""
    found, rest = _rows(place, [output]), None
    for wanted in _rows(place, group.files):
        left = wanted
        while left.num_rows:
            if rest is None or not rest.num_rows:
                rest = next(found, None)
            if rest is None:
                return False
            rows = min(left.num_rows, rest.num_rows)
            if not left.slice(0, rows).equals(rest.slice(0, rows)):
                return False
            left, rest = left.slice(rows), rest.slice(rows)
    return not (rest is not None and rest.num_rows) and next(found, None) is None


def _rows(place: Workplace, files: Sequence[LogFile]) -> Iterator[pa.RecordBatch]:
    return (batch for file in files for batch in place.log.read_file(file) if batch.num_rows)
