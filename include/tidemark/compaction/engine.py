"""The engine that runs the two passes over the files: this process, or Spark with the same functions.

In one process, memory grows with the number of keys below the watermark, not with the number of messages.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import pyarrow as pa

from tidemark.compaction.census import Census, JournalCensus
from tidemark.compaction.drops import Dropped, drop_journal, drop_keyed, drop_operations
from tidemark.compaction.plan import CompactionPlan, FileGroup
from tidemark.compaction.policies.facts_table import FACTS, judge_table
from tidemark.compaction.policies.keyed_facts import KEYED_FACTS, kept_of, merge_keyed
from tidemark.compaction.policies.policy import JournalActions, LastOfKey, ValidOperations, policy_named
from tidemark.compaction.policies.rules import CompactionRules
from tidemark.compaction.policies.valid_operations import OPERATION_FACTS, newest_valid
from tidemark.compaction.policies.verdicts import Verdicts
from tidemark.compaction.rewrite import differing_ids, rewrite_group
from tidemark.compaction.staging import Workplace
from tidemark.compaction.survey import survey_journal, survey_keyed, survey_operations
from tidemark.log.model.binding import TopicPartition
from tidemark.log.model.manifest import LogFile


@dataclass(frozen=True, slots=True)
class Surveyed:
    """The result of the first pass."""

    census: Census
    drops: tuple[Dropped, ...]


class Engine(Protocol):
    """Runs the passes. Each is idempotent, and any process may repeat it at any time."""

    def survey(self, place: Workplace, rules: CompactionRules, files: Sequence[LogFile]) -> Surveyed:
        """Read the given files, which have messages below the watermark, and note which messages to drop."""

    def rewrite(self, place: Workplace, plan: CompactionPlan) -> list[LogFile]:
        """Write the plan's new files."""

    def count_differences(self, place: Workplace, plan: CompactionPlan, outputs: Sequence[LogFile]) -> int:
        """The number of ids that are missing in the new files or too many; refuses damaged files."""


class InProcess:
    """Runs the passes in this process. ``before_group`` is called before each group of files is written or
    compared; an error that it raises ends the pass."""

    def __init__(self, before_group: Callable[[], object] = lambda: None) -> None:
        self._before_group = before_group

    def survey(self, place: Workplace, rules: CompactionRules, files: Sequence[LogFile]) -> Surveyed:
        """See ``Engine``."""
        policy = policy_named(rules.policy)
        if isinstance(policy, JournalActions):
            return self._survey_journal(place, rules, files)
        steps = ChoosingSteps(place, rules, policy)
        tables = list(steps.survey(list(enumerate(files))))
        census, kept = steps.choose(pa.concat_tables(tables or [steps.schema.empty_table()]))
        chosen: dict[int, list[int]] = {}
        for number, id_ in zip(kept["file"].to_pylist(), kept["id"].to_pylist(), strict=True):
            chosen.setdefault(number, []).append(id_)
        drops = [steps.drop(file, chosen.get(number, [])) for number, file in enumerate(files)]
        return Surveyed(census, tuple(drops))

    def _survey_journal(self, place: Workplace, rules: CompactionRules, files: Sequence[LogFile]) -> Surveyed:
        drops, census = [], JournalCensus()
        for _, of_topic in groupby(sorted(files, key=lambda file: file.topic), lambda file: file.topic):
            own = sorted(of_topic, key=lambda file: (file.partition, file.first_id))
            found = [FACTS.empty_table()]
            for _, group in groupby(own, lambda file: file.partition):
                found += survey_journal(place, rules, list(group))
            verdicts = Verdicts.of_table(judge_table(pa.concat_tables(found), census).verdicts)
            drops += [drop_journal(place, rules, file, verdicts) for file in own]
        return Surveyed(census.conclude(), tuple(drops))

    def rewrite(self, place: Workplace, plan: CompactionPlan) -> list[LogFile]:
        """See ``Engine``."""
        written = (rewrite_group(place, plan.rules, group) for group in self._each(plan))
        return [file for file in written if file is not None]

    def count_differences(self, place: Workplace, plan: CompactionPlan, outputs: Sequence[LogFile]) -> int:
        """See ``Engine``."""
        by_group = outputs_by_group(plan, outputs)
        return sum(
            differing_ids(place, plan.rules, group, by_group.get(number))
            for number, group in enumerate(self._each(plan))
        )

    def _each(self, plan: CompactionPlan) -> Iterator[FileGroup]:
        for group in plan.groups:
            self._before_group()
            yield group


@dataclass(frozen=True)
class ChoosingSteps:
    """The steps of a policy that keeps one message of every key: facts of files, the choice, the filter.

    Attributes:
        place: The working area.
        rules: The rules.
        policy: The policy.
    """

    place: Workplace
    rules: CompactionRules
    policy: LastOfKey | ValidOperations

    @property
    def schema(self) -> pa.Schema:
        """The columns of the facts; ``namespace`` and ``key`` are among them."""
        return KEYED_FACTS if isinstance(self.policy, LastOfKey) else OPERATION_FACTS

    def survey(self, numbered: Sequence[tuple[int, LogFile]]) -> Iterator[pa.Table]:
        """The facts of files, each given with its number."""
        if isinstance(self.policy, LastOfKey):
            return survey_keyed(self.place, self.rules, self.policy, numbered)
        return survey_operations(self.place, self.rules, numbered)

    def choose(self, facts: pa.Table) -> tuple[Census, pa.Table]:
        """The census, and the facts of the messages that are kept; from all facts of the keys."""
        if isinstance(self.policy, LastOfKey):
            merged = merge_keyed(facts)
            kept = kept_of(merged, self.rules.tombstones_before)
        else:
            merged = kept = newest_valid(facts)
        gone = merged.num_rows - kept.num_rows
        return Census(keys=merged.num_rows, gone=gone, chosen=kept.num_rows), kept

    def drop(self, file: LogFile, chosen: Sequence[int]) -> Dropped:
        """Note which messages of a file are dropped, where these ids of it are kept."""
        if isinstance(self.policy, LastOfKey):
            return drop_keyed(self.place, self.rules, self.policy, file, chosen)
        return drop_operations(self.place, self.rules, file, chosen)


def outputs_by_group(plan: CompactionPlan, outputs: Sequence[LogFile]) -> dict[int, LogFile]:
    """The new file of each group, by the group's number; matched by partition and ids."""
    found: dict[int, LogFile] = {}
    by_place: dict[TopicPartition, list[LogFile]] = {}
    for file in outputs:
        by_place.setdefault(file.place, []).append(file)
    for number, group in enumerate(plan.groups):
        first, last = group.files[0], group.files[-1]
        for file in by_place.get(first.place, ()):
            if first.first_id <= file.first_id <= last.last_id:
                found[number] = file
    return found
