"""The question that a compaction answers: which files, by which rules. Read from the control plane, in order.

The writers are read after the lease was taken and the bindings' time before the manifest, so whatever happens
meanwhile only makes more messages eligible, never fewer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidemark.compaction.errors import NeverCompacted, PolicyUnfit
from tidemark.compaction.plan import Plan
from tidemark.compaction.policies.policy import JournalActions, policy_named
from tidemark.compaction.policies.rules import CompactionRules, candidates, question_digest
from tidemark.compaction.watermark import Watermark, find_watermark
from tidemark.delivery.compacted_history import needing_every_message
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.registration import registered_writers
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import NOTHING_YET
from tidemark.log.model.manifest import LogFile, Manifest
from tidemark.log.model.recreated_topics import Recreations, topics_in_log
from tidemark.log.publish import read_log
from tidemark.log.state.control import LogControl
from tidemark.log.state.holds import holds
from tidemark.log.state.pins import pins
from tidemark.pipeline.kinds import POLICIES
from tidemark.pipeline.model import Pipeline, WriterStart

MICROSECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """What a pipeline's file says about compaction; times in µs."""

    policy: str
    min_lag: int
    tombstones: int
    segment_bytes: int
    writers: tuple[str, ...]
    """Those that the file lets begin with the log: one that is not registered yet blocks everything."""
    needing_all: tuple[str, ...] = ()
    """Those of them that cannot begin with a compacted log: not registered yet, they block nothing of one."""

    @classmethod
    def of(cls, pipeline: Pipeline, policy: str | None = None) -> "CompactionSettings":
        """The settings of a pipeline, with another policy for once."""
        declared = pipeline.log.compaction
        chosen, message_format = policy or declared.policy, pipeline.source.kafka.format
        understood = POLICIES.find(chosen).formats
        if understood is not None and message_format not in understood:
            raise PolicyUnfit(pipeline.name, chosen, message_format, understood)
        return cls(
            chosen,
            int(declared.min_lag.total_seconds() * MICROSECOND),
            int(declared.tombstones.total_seconds() * MICROSECOND),
            pipeline.log.segment_bytes,
            tuple(one.name for one in pipeline.writers if one.start is not WriterStart.LATEST),
            needing_every_message(pipeline.writers),
        )


@dataclass(frozen=True, slots=True)
class Question:
    """One question, with what the answer is to be shown with."""

    manifest: Manifest
    now: int
    watermark: Watermark
    rules: CompactionRules
    files: tuple[LogFile, ...]
    """Of the inactive segments, by partition and id."""
    digest: str


@dataclass(frozen=True)
class Questions:
    """Asks about one pipeline's log."""

    control: LogControl
    positions: Positions
    root: str
    settings: CompactionSettings

    def ask(self) -> Question:
        """The question as it stands now."""
        settings = self.settings
        if POLICIES.find(settings.policy).keeps_everything:
            raise NeverCompacted(self.control.pipeline, settings.policy)
        policy = policy_named(settings.policy)
        now = self.control.bindings_head().upper
        reached = self.find_positions()
        manifest = read_log(self.control, self._folder)
        young = self.control.bindings_younger(now - settings.min_lag)
        held = holds(self.control)
        watermark = find_watermark(manifest, reached, young, now, settings.min_lag, held)
        is_journal = isinstance(policy, JournalActions)
        below = watermark.id
        rules = CompactionRules(
            settings.policy,
            below,
            settings.segment_bytes,
            tuple(pin.id for pin in pins(self.control) if pin.id < below),
            self._acknowledged(reached, below) if is_journal else (),
            now - settings.tombstones if policy.drops_tombstones else 0,
            recreated=self._recreated(below) if is_journal else (),
        )
        files = candidates(manifest)
        if not is_journal:
            rules = replace(rules, last_eligible=self._last_eligible(files, below))
        return self._question(manifest, now, watermark, rules)

    def ask_as(self, plan: Plan) -> Question:
        """The question that a plan has answered, asked of the log as it is now."""
        manifest = read_log(self.control, self._folder)
        # What was published since is none of the plan's business.
        inactive = [s for s in manifest.segments if all(f.first_id < plan.active_from for f in s.files)]
        active = [s for s in manifest.segments if s not in inactive][:1]
        seen = replace(manifest, segments=(*inactive, *active))
        return self._question(seen, plan.now, plan.watermark, plan.rules)

    def find_positions(self) -> dict[str, int]:
        """What every writer has surely finished with that the log has to wait for; -1 where that is nothing.

        One that was stopped inside a binding is given that binding whole again.
        """
        refused = self.settings.needing_all if self.control.log_head().compacted_below > 0 else ()
        writers = registered_writers(self.control, self.positions, self.settings.writers, refused)
        return {one.name: one.holds_below for one in writers}

    def _question(
        self, manifest: Manifest, now: int, watermark: Watermark, rules: CompactionRules
    ) -> Question:
        files = candidates(manifest)
        digest = question_digest(manifest.pipeline, files, rules)
        return Question(manifest, now, watermark, rules, files, digest)

    def _acknowledged(self, writers: dict[str, int], below: int) -> tuple[int, ...]:
        ids = {id_ for name in writers for id_ in self.positions.acknowledged(name) if id_ < below}
        return tuple(sorted(ids))

    def _recreated(self, below: int) -> tuple[tuple[str, int], ...]:
        recreations = Recreations.of(self.control.accepted_losses())
        if not recreations:
            return ()
        found = topics_in_log(self.control.bindings_after(NOTHING_YET), recreations)
        begun = ((one.topic, one.first_id) for one in found if one.number and one.first_id < below)
        return tuple(sorted(begun))

    def _last_eligible(self, files: Sequence[LogFile], below: int) -> int:
        folder = self._folder
        lasts = [folder.last_id(file, 0, below - 1) for file in files if file.first_id < below]
        return max((last for last in lasts if last is not None), default=NOTHING_YET)

    @property
    def _folder(self) -> LogFolder:
        return LogFolder(self.control.pipeline, self.root)
