"""A synchronisation in words and in JSON: what differs, and what became of it. Reads nothing."""

from collections.abc import Iterator
from typing import Any

from tidemark.operations.operation import ObjectOperation
from tidemark.operations.times import rfc3339
from tidemark.oplog.sync.decisions import Outcome
from tidemark.oplog.sync.run_files import DiffSummary, DumpSummary, SentSummary
from tidemark.oplog.sync.verify import Verified

SAID = {
    Outcome.INSERT: "in the dump only: insert",
    Outcome.INSERT_DELETED: "in the dump, and deleted before it began: insert",
    Outcome.UPDATE: "changed later in the dump: update",
    Outcome.UPDATE_PARENTS: "other parents in the dump: update",
    Outcome.DELETE: "not in the dump: delete",
    Outcome.SAME: "the same",
    Outcome.NEWER: "changed later than in the dump",
    Outcome.DELETED_SINCE: "in the dump, and deleted since it began",
    Outcome.INSERTED_SINCE: "not in the dump, and changed since it began",
    Outcome.GONE: "not in the dump, and deleted",
}


def corrections_of(diff: DiffSummary) -> int:
    """The number of corrections."""
    return sum(count for outcome, count in diff.outcomes.items() if Outcome(outcome).event)


def deletes_of(diff: DiffSummary) -> int:
    """The number of deletes among them."""
    return diff.outcomes.get(Outcome.DELETE, 0)


def correction_line(operation: ObjectOperation, outcome: Outcome) -> str:
    """A correction in one line."""
    at = rfc3339(operation.timestamp)
    return f"{operation.event} {operation.type}/{operation.id}  {at}  {SAID[outcome].partition(':')[0]}"


def plan_document(pipeline: str, dump: DumpSummary, diff: DiffSummary) -> dict[str, Any]:
    """What would be sent, in JSON."""
    return {
        "pipeline": pipeline,
        "run": diff.key,
        "dump": dump.dump,
        "start": rfc3339(dump.start),
        "lines": dump.lines,
        "t": diff.t,
        "objects": diff.live,
        "corrections": corrections_of(diff),
        "deletes": deletes_of(diff),
        "outcomes": diff.outcomes,
        "first": list(diff.first),
    }


def plan_lines(pipeline: str, dump: DumpSummary, diff: DiffSummary) -> Iterator[str]:
    """What would be sent, in lines of text."""
    count = corrections_of(diff)
    yield (
        f"{pipeline}: {dump.dump} of {rfc3339(dump.start)} with {dump.lines:,} lines, compared with "
        f"{diff.live:,} objects at {diff.t}: {count:,} correction{'' if count == 1 else 's'}"
    )
    for outcome, said in SAID.items():
        if found := diff.outcomes.get(outcome):
            yield f"  {found:>12,}  {said}"
    for line in diff.first:
        yield f"  {line}"
    if count > len(diff.first):
        yield f"  … and {count - len(diff.first):,} more"


def report_document(
    pipeline: str, dump: DumpSummary, diff: DiffSummary, sent: SentSummary | None, verified: Verified | None
) -> dict[str, Any]:
    """What a run did, in JSON. Without corrections nothing was sent or verified."""
    plan = plan_document(pipeline, dump, diff)
    return plan | {
        "sent": sent.sent if sent else 0,
        "overtaken": sent.overtaken if sent else 0,
        "resent": sent.resent if sent else 0,
        "as_sent": verified.as_sent if verified else 0,
        "changed_since": verified.changed_since if verified else 0,
    }


def report_line(report: dict[str, Any]) -> str:
    """What a run did, in one line."""
    if not report["corrections"]:
        return f"{report['pipeline']}: the dump and the objects agree; nothing was sent"
    return (
        f"{report['pipeline']}: {report['sent']:,} corrections sent, {report['overtaken']:,} objects left "
        f"alone because they had changed since; {report['as_sent']:,} are as they were corrected, "
        f"{report['changed_since']:,} were changed by later operations"
    )
