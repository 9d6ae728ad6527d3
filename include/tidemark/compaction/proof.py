"""The proof before publication: every message that was read is kept, or dropped for a counted reason.

It uses what was counted while the files were filtered, not what the plan intended. For ``progress`` and
``latest``: every key keeps its last message, unless that is an expired tombstone. For ``oplog``: every object
keeps one operation. For ``journal``: every
dropped message is a mark, or no action, or is followed by a delete of its entity that is kept, or by a purge,
which is kept as long as anything older is. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence

from tidemark.compaction.census import Census
from tidemark.compaction.drops import Dropped
from tidemark.compaction.errors import NotConserved
from tidemark.compaction.policies.policy import JournalActions, policy_named
from tidemark.compaction.policies.rules import CompactionRules
from tidemark.log.model.manifest import LogFile


def prove_verdicts(
    pipeline: str,
    plan: str,
    rules: CompactionRules,
    census: Census,
    files: Sequence[LogFile],
    drops: Sequence[Dropped],
) -> None:
    """Raise ``NotConserved`` where the drops do not account for every message and every key."""
    for problem in _problems(rules, census, files, drops):
        raise NotConserved(pipeline, plan, problem)


def _problems(
    rules: CompactionRules, census: Census, files: Sequence[LogFile], drops: Sequence[Dropped]
) -> Iterable[str]:
    counts = {file.path: file.count for file in files}
    if sorted(counts) != sorted(one.path for one in drops):
        yield "other files were filtered than were to be"
    for one in drops:
        if counts.get(one.path) != one.count:
            yield f"{one.path} was to hold {counts.get(one.path)} messages, and {one.count} were found"
        if one.dropped > one.eligible or one.eligible > one.count:
            yield f"{one.path}: {one.dropped} of {one.eligible} of {one.count} messages cannot be dropped"
        if one.last_dropped >= rules.watermark:
            yield f"{one.path}: id {one.last_dropped} is not below the watermark {rules.watermark}"
        if one.pinned_dropped:
            yield f"{one.path}: {one.pinned_dropped} pinned messages would be dropped"
        if one.nothing + one.purged + one.deleted + one.superseded != one.dropped:
            yield f"{one.path}: not every one of {one.dropped} dropped messages has its reason"
        if one.kept_below_gone_purge:
            yield f"{one.path}: {one.kept_below_gone_purge} purged messages would stay without their purge"
    found = {
        "deletes that stay": (census.deletes, sum(one.kept_deletes for one in drops)),
        "purges that stay": (census.kept_purges, sum(one.kept_purges for one in drops)),
        "purges that go": (census.gone_purges, sum(one.gone_purges for one in drops)),
        "last messages of a key": (census.chosen, sum(one.kept_chosen for one in drops)),
    }
    for what, (wanted, counted) in found.items():
        if wanted != counted:
            yield f"{wanted} {what} were to be found, and {counted} were"
    chooses = not isinstance(policy_named(rules.policy), JournalActions)
    if chooses and census.chosen + census.gone != census.keys:
        yield f"of {census.keys} keys {census.chosen} have a last message and {census.gone} need none"


def prove_outputs(
    pipeline: str, plan: str, expected: Mapping[str, int], written: Mapping[str, int], lost: int
) -> None:
    """Raise ``NotConserved`` where the new files do not hold exactly the messages that are kept.

    Both counts are by group; ``lost`` is the number of ids that are missing or too many.
    """
    for group, wanted in expected.items():
        if written.get(group, 0) != wanted:
            found = written.get(group, 0)
            raise NotConserved(pipeline, plan, f"{group}: {wanted} messages stay, and {found} were written")
    if lost:
        raise NotConserved(pipeline, plan, f"{lost} ids are not where they were")
