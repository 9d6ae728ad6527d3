"""compact: plan, write, verify, publish, in an order in which any step may die and be done again.

Everything that decides is read under the log's lease, which is held from the plan to the publication; a plan
that a person has approved meanwhile is checked anew before anything is done with it. Nothing is visible
before the one compare-and-set that makes another manifest the log, and the old files are left for a sweep.
Capture goes on all the time: what it publishes is kept in the new manifest.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from uuid import uuid4

from tidemark.clock import SECOND, Clock, wall_clock
from tidemark.compaction.engine import Engine, outputs_by_group
from tidemark.compaction.errors import PlanOutdated
from tidemark.compaction.inputs import CompactionSettings, Question, Questions
from tidemark.compaction.plan import CompactionPlan, make_plan, replace_files
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
from tidemark.log.model.manifest import LogFile
from tidemark.log.publish import read_log, read_manifest
from tidemark.log.state.compactions import CompactionOutcome, CompactionRecord, one_more, record_compaction
from tidemark.log.state.control import LogControl, LogHead
from tidemark.log.state.lease import LogHold, LogLost, take_log
from tidemark.pipeline.model import Pipeline


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction came to."""

    plan: CompactionPlan
    head: LogHead
    messages_before: int
    messages_after: int
    bytes_before: int
    bytes_after: int
    """Of the whole log, just before and just after."""
    bytes_written: int


@dataclass(frozen=True)
class Compaction:
    """The compaction of one pipeline's log; every step may be repeated by anybody."""

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
        """The compaction of a pipeline's log, by its own policy or by another one for once."""
        control, positions = LogControl(consensus, pipeline.name), Positions(consensus, pipeline.name)
        settings = CompactionSettings.of(pipeline, policy)
        return cls(Questions(control, positions, pipeline.log.path, settings), engine)

    @property
    def pipeline(self) -> str:
        """Whose log it is."""
        return self.questions.control.pipeline

    def look(self) -> CompactionPlan:
        """The plan as it would be now. Takes no lease, and leaves nothing behind."""
        question = self.questions.ask()
        place = replace(self._place(question.digest), look=f"-{uuid4().hex[:8]}")
        try:
            return self._plan(question, place)
        finally:
            place.remove()

    def is_idle(self) -> bool:
        """Whether there is nothing to look at: then a plan needs nobody else's help."""
        question = self.questions.ask()
        if self._plans.is_settled(question.digest):
            return True
        return not any(question.rules.is_eligible(file) for file in question.files)

    def run(self, holder: str) -> Compacted | CompactionPlan:
        """Everything at once; an empty plan where there is nothing to gain."""
        began = self.clock()
        plan = self.plan(holder)
        if not plan.is_empty:
            self.write(plan.digest, holder)
            self.verify(plan.digest, holder)
        return self.publish(plan.digest, holder, began)

    def plan(self, holder: str) -> CompactionPlan:
        """Make the plan and keep it, under the lease; the lease stays for the next step."""
        with self._held(holder) as hold:
            reach(FaultPoint.COMPACT_LEASED)
            question = self.questions.ask()
            # From now on nobody takes what the plan writes for orphans.
            hold.record_plan(question.digest)
            plan = self._plan(question, self._place(question.digest))
            self._plans.keep(plan, self._place(plan.digest).area)
        reach(FaultPoint.COMPACT_PLANNED)
        return plan

    def write(self, digest: str, holder: str) -> list[LogFile]:
        """Write the plan's files, which nobody can see yet."""
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
        """Prove that the new files hold every message that stays, and nothing else."""
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
        """Make the new files part of the log, in one step; then the lease is given back.

        Of a plan with nothing to gain only the history is written.
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
        written = sum(file.bytes for file in files)
        done: list[Compacted] = []

        def rebase(head: LogHead) -> LogHead:
            # Whoever registered or rewound a writer while our lease had run out has changed the log's object.
            self._refuse_outdated(plan)
            before = read_manifest(self.pipeline, self._log, head)
            after = replace_files(before, plan, files)
            path, digest = self._log.write_manifest(after)
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
        """What the first pass noted may have been swept while a person was asked: then it is done again."""
        eligible = [file for file in plan.inputs if plan.rules.is_eligible(file)]
        if all(place.is_noted(file) for file in eligible):
            return
        again = self.questions.ask_as(plan)
        files = [file for file in again.files if plan.rules.is_eligible(file)]
        self.engine.survey(place, plan.rules, files)

    def _refuse_outdated(self, plan: CompactionPlan) -> None:
        """Refuse a plan by whose rules messages would go that must stay now."""
        now = self.questions.ask_as(plan)
        if now.digest != plan.digest:
            raise PlanOutdated(self.pipeline, plan.digest, "other files are in its segments")
        current = self.questions.ask()
        if current.watermark.id < plan.rules.watermark:
            raise PlanOutdated(
                self.pipeline,
                plan.digest,
                f"{current.watermark.held_back_by} holds the watermark at {current.watermark.id} now, below "
                f"the plan's {plan.rules.watermark}",
            )
        for name in ("pins", "acknowledged"):
            known = getattr(plan.rules, name)
            fresh = [id_ for id_ in getattr(current.rules, name) if id_ < plan.rules.watermark]
            if added := sorted(set(fresh) - set(known)):
                raise PlanOutdated(self.pipeline, plan.digest, f"id {added[0]} is {name} since")

    def _settle(self, plan: CompactionPlan, after: Question) -> None:
        """Remember that asking the same again would find nothing: the answer does not have to be sought."""
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
        """What puts the compaction on record; part of the step that makes it true."""
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
            )
        return one_more(self.questions.control, record)

    @contextmanager
    def recording_refusals(self, holder: str) -> Iterator[None]:
        """Keep what a compaction is refused for; the refusal goes on."""
        try:
            yield
        except TidemarkError as error:
            self.record_refusal(holder, str(error))
            raise

    def record_refusal(self, holder: str, reason: str) -> None:
        """Keep that a compaction was refused, and why."""
        policy = self.questions.settings.policy
        record = CompactionRecord(self.clock(), holder, policy, CompactionOutcome.REFUSED, reason)
        record_compaction(self.questions.control, record)

    def _is_done(self, plan: CompactionPlan) -> bool:
        """Whether the plan's files are the log's already: somebody died, or was slow, before saying so."""
        if plan.is_empty or not self._plans.has_files(plan.digest):
            return False
        there = {file.path for file in read_log(self.questions.control, self._log).files}
        written = [file.path for file in self._plans.read_files(plan.digest)]
        return there.issuperset(written) and there.isdisjoint(file.path for file in plan.inputs)

    @contextmanager
    def _held(self, holder: str, *, release: bool = False) -> Iterator[LogHold]:
        """The log's lease, kept alive; given back after the last step, otherwise left to the next one."""
        hold = take_log(self.questions.control, holder, self.clock)
        give_back = hold.release if release else hold.renew
        with LeaseHolder(hold.what, hold.renew, give_back, lost=LogLost):
            try:
                yield hold
            except Exception:
                # Whoever took the log over may have removed what was missing here.
                hold.renew()
                raise

    def give_back(self, holder: str) -> None:
        """Give the lease back between two steps: while a person thinks, rewinds should not have to wait."""
        take_log(self.questions.control, holder, self.clock).release()

    @property
    def _plans(self) -> Plans:
        return Plans(self.pipeline, self.questions.root)

    def _place(self, digest: str) -> Workplace:
        return Workplace(self.pipeline, self.questions.root, digest)

    @property
    def _log(self) -> LogFolder:
        return LogFolder(self.pipeline, self.questions.root)
