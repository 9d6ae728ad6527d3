"""The engine that runs the two passes over the files: this process, or Spark with the same functions.

In one process, memory grows with the number of keys below the watermark, not with the number of messages.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import pyarrow as pa

from tidemark.compaction.census import Census, JournalCensus
from tidemark.compaction.drops import Dropped, drop_journal, drop_keyed
from tidemark.compaction.plan import CompactionPlan, FileGroup
from tidemark.compaction.policies.facts_table import FACTS, judge_table
from tidemark.compaction.policies.keyed_facts import KEYED_FACTS, kept_of, merge_keyed
from tidemark.compaction.policies.policy import JournalActions, policy_named
from tidemark.compaction.policies.rules import CompactionRules
from tidemark.compaction.policies.verdicts import Verdicts
from tidemark.compaction.rewrite import differing_ids, rewrite_group
from tidemark.compaction.staging import Workplace
from tidemark.compaction.survey import survey_journal, survey_keyed
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
        tables = list(survey_keyed(place, rules, policy, list(enumerate(files))))
        census, kept = choose(pa.concat_tables(tables or [KEYED_FACTS.empty_table()]), rules)
        chosen: dict[int, list[int]] = {}
        for number, id_ in zip(kept["file"].to_pylist(), kept["id"].to_pylist(), strict=True):
            chosen.setdefault(number, []).append(id_)
        drops = [
            drop_keyed(place, rules, policy, file, chosen.get(number, []))
            for number, file in enumerate(files)
        ]
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


def choose(facts: pa.Table, rules: CompactionRules) -> tuple[Census, pa.Table]:
    """The census, and the facts of the last messages that are kept; from all facts of the keys."""
    merged = merge_keyed(facts)
    kept = kept_of(merged, rules.tombstones_before)
    gone = merged.num_rows - kept.num_rows
    return Census(keys=merged.num_rows, gone=gone, chosen=kept.num_rows), kept


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
