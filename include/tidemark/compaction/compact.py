"""compact: plan, write, verify and publish. Every step is idempotent, so a crashed one can be retried.

All inputs are read under the log's lease, which is held from the plan to the publication. A plan that waited
for an operator's approval is checked again before it is carried out. Nothing is visible before one
compare-and-set makes the new manifest the log's. Replaced files are left to the sweep. Capture goes on
meanwhile, and what it publishes is kept in the new manifest.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from uuid import uuid4

from tidemark.clock import SECOND, Clock, wall_clock
from tidemark.compaction.engine import Engine, outputs_by_group
from tidemark.compaction.errors import PlanOutdated
from tidemark.compaction.exchange import exchange_files
from tidemark.compaction.inputs import CompactionSettings, Question, Questions
from tidemark.compaction.plan import CompactionPlan, make_plan
from tidemark.compaction.plan_files import Plans
from tidemark.compaction.policies.rules import question_digest
from tidemark.compaction.proof import prove_outputs, prove_verdicts
from tidemark.compaction.staging import Workplace
from tidemark.consensus.lease_holder import LeaseHolder
from tidemark.consensus.objects import Change, Consensus
from tidemark.delivery.state.positions import Positions
from tidemark.errors import TidemarkError
from tidemark.faults import FaultPoint, reach
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.manifest import LogFile, Manifest
from tidemark.log.publish import read_log, read_manifest
from tidemark.log.state.compactions import (
    CompactionOutcome,
    CompactionRecord,
    compactions,
    one_more,
    record_compaction,
)
from tidemark.log.state.control import LogControl, LogHead
from tidemark.log.state.lease import LogHold, LogLost, take_log
from tidemark.pipeline.model import Pipeline


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result of a compaction. Sizes before and after are of the whole log, around the publication."""

    plan: CompactionPlan
    head: LogHead
    messages_before: int
    messages_after: int
    bytes_before: int
    bytes_after: int
    bytes_written: int


@dataclass(frozen=True)
class Compaction:
    """The compaction of one pipeline's log. Any process may repeat any step."""

    questions: Questions
    engine: Engine
    clock: Clock = wall_clock

    @classmethod
    def open(
        cls,
        pipeline: Pipeline,
        consensus: Consensus,
        engine: Engine,
        policy: str | None = None,
    ) -> "Compaction":
        """The compaction of a pipeline's log; ``policy`` overrides the pipeline's own."""
        control, positions = LogControl(consensus, pipeline.name), Positions(consensus, pipeline.name)
        settings = CompactionSettings.of(pipeline, policy)
        return cls(Questions(control, positions, pipeline.log.path, settings), engine)

    @property
    def pipeline(self) -> str:
        """The pipeline's name."""
        return self.questions.control.pipeline

    def look(self) -> CompactionPlan:
        """The plan as it would be now. Takes no lease, and stores nothing."""
        question = self.questions.ask()
        place = replace(self._place(question.digest), look=f"-{uuid4().hex[:8]}")
        try:
            return self._plan(question, place)
        finally:
            place.remove()

    def is_idle(self) -> bool:
        """Whether no file needs to be read, so that a plan can be made without Spark."""
        question = self.questions.ask()
        if self._plans.is_settled(question.digest):
            return True
        return not any(question.rules.is_eligible(file) for file in question.files)

    def run(self, holder: str) -> Compacted | CompactionPlan:
        """All steps in one process; returns the empty plan where there is nothing to drop or to merge."""
        began = self.clock()
        plan = self.plan(holder)
        if not plan.is_empty:
            self.write(plan.digest, holder)
            self.verify(plan.digest, holder)
        return self.publish(plan.digest, holder, began)

    def plan(self, holder: str) -> CompactionPlan:
        """Make the plan and store it, under the lease. The lease is kept for the next step."""
        with self._held(holder) as hold:
            reach(FaultPoint.COMPACT_LEASED)
            question = self.questions.ask()
            # From now on the sweep does not take the plan's files for orphans.
            hold.record_plan(question.digest)
            plan = self._plan(question, self._place(question.digest))
            self._plans.keep(plan, self._place(plan.digest).area)
        reach(FaultPoint.COMPACT_PLANNED)
        return plan

    def write(self, digest: str, holder: str) -> list[LogFile]:
        """Write the plan's files, which no manifest names yet."""
        plan = self._plans.read(digest)
        with self._held(holder) as hold:
            if self._is_done(plan):
                return self._plans.read_files(digest)
            self._refuse_outdated(plan)
            hold.record_plan(plan.digest)
            place = self._place(plan.digest)
            self._ensure_noted(place, plan)
            files = self.engine.rewrite(place, plan)
            self._plans.keep_files(digest, files, place.area)
        reach(FaultPoint.COMPACT_FILES_WRITTEN)
        return files

    def verify(self, digest: str, holder: str) -> None:
        """Prove that the new files hold exactly the messages that are kept."""
        plan, place = self._plans.read(digest), self._place(digest)
        files = self._plans.read_files(digest)
        with self._held(holder):
            if self._is_done(plan):
                return
            self._refuse_outdated(plan)
            self._ensure_noted(place, plan)
            by_group = outputs_by_group(plan, files)
            expected = {group.name: group.kept for group in plan.groups}
            written = {plan.groups[number].name: file.count for number, file in by_group.items()}
            differences = self.engine.count_differences(place, plan, files)
            prove_outputs(self.pipeline, digest, expected, written, differences)
        reach(FaultPoint.COMPACT_VERIFIED)

    def publish(self, digest: str, holder: str, began: int) -> Compacted | CompactionPlan:
        """Make the new files part of the log, by one compare-and-set, and release the lease.

        For an empty plan only the history is written. ``began`` is when the compaction started (µs).
        """
        plan = self._plans.read(digest)
        with self._held(holder, release=True) as hold:
            if plan.is_empty:
                record = partial(self._recorded, plan, holder, began, CompactionOutcome.NOTHING_TO_DO)
                hold.replace_log(lambda head: head, record)
                self._settle(plan, self.questions.ask())
                done: Compacted | CompactionPlan = plan
            else:
                done = self._publish(plan, hold, holder, began)
            self._place(digest).remove()
        return done

    def _publish(self, plan: CompactionPlan, hold: LogHold, holder: str, began: int) -> Compacted:
        files = self._plans.read_files(plan.digest)
        head = self.questions.control.log_head()
        current = read_manifest(self.pipeline, self._log, head)
        if self._is_done(plan):
            return Compacted(
                plan, head, current.count + plan.dropped, current.count, current.bytes, current.bytes, 0
            )
        self._refuse_outdated(plan)
        exchange = exchange_files(current, plan.digest, plan.inputs, files, plan.rules.segment_bytes)
        exchange = replace(exchange, new=self._log.write_lists(exchange.new, current.t, plan.digest))
        reach(FaultPoint.COMPACT_LISTS_WRITTEN)
        written = sum(file.bytes for file in files)
        done: list[Compacted] = []
        seen: list[str | None] = []

        def rebase(head: LogHead) -> LogHead:
            # While this lease had run out, a writer may have been registered or rewound. Only bindings at
            # positions are read: publications go on, and what takes long here never wins against them.
            self._refuse_limits(plan, with_age=False)
            if done and head.manifest == seen[-1]:
                return done[0].head  # only other rows of the log object have changed
            seen.append(head.manifest)
            before = read_manifest(self.pipeline, self._log, head)
            after = marked(exchange.apply(before), plan)
            path, digest = self._log.write_manifest(after, plan.digest)
            reach(FaultPoint.COMPACT_MANIFEST_WRITTEN)
            named = LogHead.naming(after, path, digest, self._log.root)
            sizes = before.count, after.count, before.bytes, after.bytes
            done[:] = [Compacted(plan, named, *sizes, written)]
            return named

        def record() -> Change:
            return self._recorded(plan, holder, began, CompactionOutcome.COMPACTED, done[0])

        head = hold.replace_log(rebase, record)
        reach(FaultPoint.COMPACT_COMMITTED)
        self._settle(plan, self.questions.ask())
        return replace(done[0], head=head)

    def _plan(self, question: Question, place: Workplace) -> CompactionPlan:
        rules, files = question.rules, question.files
        if self._plans.is_settled(question.digest):
            eligible: Sequence[LogFile] = ()
        else:
            eligible = [file for file in files if rules.is_eligible(file)]
        surveyed = self.engine.survey(place, rules, eligible)
        prove_verdicts(self.pipeline, question.digest, rules, surveyed.census, eligible, surveyed.drops)
        return make_plan(
            question.manifest,
            question.digest,
            question.now,
            question.watermark,
            rules,
            surveyed.census,
            surveyed.drops,
        )

    def _ensure_noted(self, place: Workplace, plan: CompactionPlan) -> None:
        """Repeat the first pass where its notes were swept, which happens while a plan waits for approval."""
        eligible = [file for file in plan.inputs if plan.rules.is_eligible(file)]
        if all(place.is_noted(file) for file in eligible):
            return
        again = self.questions.ask_as(plan)
        files = [file for file in again.files if plan.rules.is_eligible(file)]
        self.engine.survey(place, plan.rules, files)

    def _refuse_outdated(self, plan: CompactionPlan) -> None:
        """Raise ``PlanOutdated`` where the plan would drop messages that must be kept now."""
        now = self.questions.ask_as(plan)
        if now.digest != plan.digest:
            raise PlanOutdated(self.pipeline, plan.digest, "other files are in its segments")
        self._refuse_limits(plan)

    def _refuse_limits(self, plan: CompactionPlan, *, with_age: bool = True) -> None:
        """Raise ``PlanOutdated`` where positions, holds, pins or acknowledgements allow less than before;
        ``with_age``: or ``min_lag``, where the pipeline's file has another one since."""
        current = self.questions.ask_limits(with_age=with_age)
        if current.watermark.id < plan.rules.watermark:
            raise PlanOutdated(
                self.pipeline,
                plan.digest,
                f"{current.watermark.held_back_by} holds the watermark at {current.watermark.id} now, below "
                f"the plan's {plan.rules.watermark}",
            )
        for name in ("pins", "acknowledged"):
            known = getattr(plan.rules, name)
            fresh = [id_ for id_ in getattr(current, name) if id_ < plan.rules.watermark]
            if added := sorted(set(fresh) - set(known)):
                raise PlanOutdated(self.pipeline, plan.digest, f"id {added[0]} is {name} since")

    def _settle(self, plan: CompactionPlan, after: Question) -> None:
        """Record that a compaction of the resulting files by the same rules has nothing to do."""
        rules = replace(after.rules, watermark=plan.rules.watermark, last_eligible=plan.rules.last_eligible)
        if rules != plan.rules:
            return
        digest = question_digest(self.pipeline, after.files, rules)
        self._plans.settle(digest, self._place(digest).area)

    def _recorded(
        self,
        plan: CompactionPlan,
        holder: str,
        began: int,
        outcome: CompactionOutcome,
        done: Compacted | None = None,
    ) -> Change:
        """The change that adds the compaction to the history, to be committed with its publication."""
        now = self.clock()
        record = CompactionRecord(
            at=now,
            by=holder,
            policy=plan.rules.policy,
            outcome=outcome,
            watermark=plan.rules.watermark,
            held_back_by=plan.held_back_by,
            seconds=(now - began) / SECOND,
        )
        if done:
            record = replace(
                record,
                messages_before=done.messages_before,
                messages_after=done.messages_after,
                bytes_before=done.bytes_before,
                bytes_after=done.bytes_after,
                plan=plan.digest,
            )
        return one_more(self.questions.control, record)

    @contextmanager
    def recording_refusals(self, holder: str) -> Iterator[None]:
        """Record errors of the block as refusals in the history, and raise them again."""
        try:
            yield
        except TidemarkError as error:
            self.record_refusal(holder, str(error))
            raise

    def record_refusal(self, holder: str, reason: str) -> None:
        """Add a refused compaction to the history, with the reason."""
        policy = self.questions.settings.policy
        record = CompactionRecord(self.clock(), holder, policy, CompactionOutcome.REFUSED, reason)
        record_compaction(self.questions.control, record)

    def _is_done(self, plan: CompactionPlan) -> bool:
        """Whether the plan is published already, by a process that crashed or was slow to report it."""
        if plan.is_empty or not self._plans.has_files(plan.digest):
            return False
        # The record was committed with the publication. The files say less: a merge may have replaced them.
        if any(record.plan == plan.digest for record in compactions(self.questions.control)):
            return True
        written = [file.path for file in self._plans.read_files(plan.digest)]
        first, last = min(f.first_id for f in plan.inputs), max(f.last_id for f in plan.inputs)
        log = read_log(self.questions.control, self._log)
        current = {file.path for file in log.files_between(first, last)}
        return current.issuperset(written) and current.isdisjoint(file.path for file in plan.inputs)

    @contextmanager
    def _held(self, holder: str, *, release: bool = False) -> Iterator[LogHold]:
        """The log's lease, renewed in the background; afterwards released, or kept for the next step."""
        hold = take_log(self.questions.control, holder, self.clock)
        give_back = hold.release if release else hold.renew
        with LeaseHolder(hold.what, hold.renew, give_back, lost=LogLost):
            try:
                yield hold
            except Exception:
                # A lost lease is the better error: the next holder may have removed what was missing here.
                hold.renew()
                raise

    def give_back(self, holder: str) -> None:
        """Release the lease between two steps, so that rewinds need not wait for an operator's approval."""
        take_log(self.questions.control, holder, self.clock).release()

    @property
    def _plans(self) -> Plans:
        return Plans(self.pipeline, self.questions.root)

    def _place(self, digest: str) -> Workplace:
        return Workplace(self.pipeline, self.questions.root, digest)

    @property
    def _log(self) -> LogFolder:
        return LogFolder(self.pipeline, self.questions.root)


def marked(manifest: Manifest, plan: CompactionPlan) -> Manifest:
    """The manifest with the mark of the compaction; merging files alone leaves the log complete."""
    return manifest.compacted(plan.rules.watermark, plan.rules.policy) if plan.dropped else manifest
