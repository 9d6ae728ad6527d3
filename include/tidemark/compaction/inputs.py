"""The inputs of a compaction, called its question: which files, by which rules.

Read from the control plane in a fixed order: the writers after the lease was taken, the bindings' time before
the manifest. So concurrent changes can only make more messages eligible, never fewer. No message is read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from tidemark.clock import SECOND
from tidemark.compaction.errors import NeverCompacted, PolicyUnfit
from tidemark.compaction.plan import CompactionPlan
from tidemark.compaction.policies.policy import JournalActions, ValidOperations, policy_named
from tidemark.compaction.policies.rules import CompactionRules, candidates, question_digest
from tidemark.compaction.watermark import Watermark, find_watermark
from tidemark.delivery.compacted_history import needing_every_message
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.registration import registered_writers
from tidemark.log.bindings.door import Bindings
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.binding import NOTHING_YET, Binding
from tidemark.log.model.manifest import LogFile, Manifest
from tidemark.log.model.recreated_topics import Recreation, Recreations, topics_in_log
from tidemark.log.publish import read_log
from tidemark.log.state.control import LogControl
from tidemark.log.state.holds import holds
from tidemark.log.state.pins import pins
from tidemark.pipeline.kinds import POLICIES
from tidemark.pipeline.model import Pipeline, WriterStart


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """The compaction settings of a pipeline's file; times in µs.

    Attributes:
        writers: The writers that start with the log's beginning. One that is not registered yet blocks
            compaction.
        needing_all: Those of ``writers`` that cannot start with a compacted log. Where the log is compacted
            already, such a writer can never start, so it blocks nothing.
    """

    policy: str
    min_lag: int
    tombstones: int
    segment_bytes: int
    writers: tuple[str, ...]
    needing_all: tuple[str, ...] = ()

    @classmethod
    def of(cls, pipeline: Pipeline, policy: str | None = None) -> "CompactionSettings":
        """The settings of a pipeline; ``policy`` overrides its own. Raises ``PolicyUnfit``."""
        declared = pipeline.log.compaction
        chosen, message_format = policy or declared.policy, pipeline.source.kafka.format
        understood = POLICIES.find(chosen).formats
        if understood is not None and message_format not in understood:
            raise PolicyUnfit(pipeline.name, chosen, message_format, understood)
        return cls(
            chosen,
            int(declared.min_lag.total_seconds() * SECOND),
            int(declared.tombstones.total_seconds() * SECOND),
            pipeline.log.segment_bytes,
            tuple(one.name for one in pipeline.writers if one.start is not WriterStart.LATEST),
            needing_every_message(pipeline.writers),
        )


@dataclass(frozen=True, slots=True)
class Question:
    """The inputs of one compaction.

    Attributes:
        now: The first time not yet bound (µs).
        files: The files of the inactive segments, by partition and id.
    """

    manifest: Manifest
    now: int
    watermark: Watermark
    rules: CompactionRules
    files: tuple[LogFile, ...]

    @property
    def digest(self) -> str:
        """The digest of files and rules, which identifies the plan."""
        return question_digest(self.manifest.pipeline, self.files, self.rules)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a compaction may drop now, without a look at the log's files.

    Attributes:
        now: The first time not yet bound (µs).
        pins: The pinned ids below the watermark.
        acknowledged: The ids below the watermark that an operator has let a writer pass over; only for
            policies that consider them.
    """

    manifest: Manifest
    now: int
    watermark: Watermark
    pins: tuple[int, ...]
    acknowledged: tuple[int, ...]


@dataclass(frozen=True)
class Questions:
    """Reads the inputs of a compaction of one pipeline's log."""

    control: LogControl
    positions: Positions
    root: str
    settings: CompactionSettings

    def ask(self) -> Question:
        """The inputs as of now. Raises ``NeverCompacted`` where the policy keeps everything."""
        limits, settings = self.ask_limits(), self.settings
        policy, below = policy_named(settings.policy), limits.watermark.id
        files = candidates(limits.manifest)
        is_journal, is_oplog = isinstance(policy, JournalActions), isinstance(policy, ValidOperations)
        recreated = self._recreated(below) if is_journal or is_oplog else ()
        rules = CompactionRules(
            settings.policy,
            below,
            settings.segment_bytes,
            limits.pins,
            limits.acknowledged,
            limits.now - settings.tombstones if policy.drops_tombstones else 0,
            recreated=tuple((topic, first_id) for topic, first_id, _ in recreated),
            topic_ids=self._topic_ids(recreated) if is_oplog else (),
        )
        if not is_journal:
            rules = replace(rules, last_eligible=self._last_eligible(files, below))
        return Question(limits.manifest, limits.now, limits.watermark, rules, files)

    def ask_limits(self, *, with_age: bool = True) -> Limits:
        """The limits as of now, as far as the control plane has them: no list of segments is read.

        Without ``with_age``, ``min_lag`` is left out, and its bindings are not read. For a plan whose
        watermark was below that limit once: the limit only rises.
        """
        settings = self.settings
        if POLICIES.find(settings.policy).keeps_everything:
            raise NeverCompacted(self.control.pipeline, settings.policy)
        now = self.control.bindings_head().upper
        reached = self.find_positions()
        manifest = read_log(self.control, self._folder)
        young = Bindings(self.control, self._folder).younger(now - settings.min_lag) if with_age else ()
        held = holds(self.control)
        watermark = find_watermark(manifest, reached, young, now, settings.min_lag, held)
        below = watermark.id
        knows_acknowledged = isinstance(policy_named(settings.policy), JournalActions | ValidOperations)
        return Limits(
            manifest,
            now,
            watermark,
            tuple(pin.id for pin in pins(self.control) if pin.id < below),
            self._acknowledged(reached, below) if knows_acknowledged else (),
        )

    def ask_as(self, plan: CompactionPlan) -> Question:
        """The inputs by a plan's rules, with the log's present files up to the plan's active segment."""
        manifest = read_log(self.control, self._folder)
        # Later segments were published after the plan was made.
        inactive = tuple(leaf for leaf in manifest.leaves() if leaf.first_id < plan.active_from)
        seen = replace(manifest, closed=inactive)
        return Question(seen, plan.now, plan.watermark, plan.rules, candidates(seen))

    def find_positions(self) -> dict[str, int]:
        """The last id that every writer has finished with; −1 for none.

        A writer that was stopped inside a binding gets the whole binding again, so it has not finished with
        any of it.
        """
        refused = self.settings.needing_all if self.control.log_head().compacted_below > 0 else ()
        writers = registered_writers(self.control, self.positions, self.settings.writers, refused)
        return {one.name: one.holds_below for one in writers}

    def _acknowledged(self, writers: dict[str, int], below: int) -> tuple[int, ...]:
        ids = {id_ for name in writers for id_ in self.positions.acknowledged(name) if id_ < below}
        return tuple(sorted(ids))

    def _recreated(self, below: int) -> tuple[tuple[str, int, str], ...]:
        """The recreated topics, their first ids and Kafka's ids, of those with ids below ``below``. Of every
        recreation only the bindings up to the topic's next one are read."""
        recreations = Recreations.of(self.control.accepted_losses())
        found: dict[tuple[str, int], tuple[int, str]] = {}
        for topic, of_topic in recreations.of_topics.items():
            for one in of_topic:
                first = next(self._bindings_since(one, below), None)
                for begun in topics_in_log([first] if first else [], recreations):
                    if begun.topic == topic:
                        begins = begun.first_id, begun.topic_id or ""
                        known = found.get((topic, begun.number), begins)
                        found[topic, begun.number] = min(known, begins)
        return tuple(sorted((topic, *begins) for (topic, _), begins in found.items() if begins[0] < below))

    def _topic_ids(self, recreated: Sequence[tuple[str, int, str]]) -> tuple[tuple[str, str], ...]:
        """Kafka's ids of the source's topic, and of those that were created again under its name."""
        first = next(iter(Bindings(self.control, self._folder).every()), None)
        topics = {s.topic for s in first.slices} if first else set()
        ids = [(topic, first.topic_ids.get(topic, "")) for topic in sorted(topics)] if first else []
        return (*ids, *((topic, topic_id) for topic, _, topic_id in recreated))

    def _bindings_since(self, recreation: Recreation, below: int) -> Iterator[Binding]:
        """The bindings of a topic after its recreation, with ids below ``below``."""
        door, accepted = Bindings(self.control, self._folder), recreation.accepted
        after = door.after(accepted.after) if accepted.t is None else door.younger(accepted.t)
        for binding in takewhile(lambda one: one.base < below, after):
            if recreation.is_before(binding) and any(s.topic == recreation.topic for s in binding.slices):
                yield binding

    def _last_eligible(self, files: Sequence[LogFile], below: int) -> int:
        folder = self._folder
        lasts = [folder.last_id(file, 0, below - 1) for file in files if file.first_id < below]
        return max((last for last in lasts if last is not None), default=NOTHING_YET)

    @property
    def _folder(self) -> LogFolder:
        return LogFolder(self.control.pipeline, self.root)
