"""Plans and results as lines for operators and as documents for tasks and ``--json``."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import msgspec

from tidemark.compaction.compact import Compacted
from tidemark.compaction.merging.merge import Merged
from tidemark.compaction.plan import CompactionPlan

REASONS = {
    "nothing": "marks and messages that are no actions",
    "purged": "purged, or purges with nothing left to purge",
    "deleted": "deleted, and the delete stays",
    "superseded": "replaced by a later message, or void",
}


def plan_document(plan: CompactionPlan) -> dict[str, Any]:
    """The plan as tasks return it and ``--json`` prints it."""
    return {
        "pipeline": plan.pipeline,
        "plan": plan.digest,
        "policy": plan.rules.policy,
        "now": plan.now,
        "watermark": plan.watermark.id,
        "held_back_by": plan.held_back_by,
        "withheld_ids": plan.watermark.withheld,
        "limits": [asdict(limit) for limit in plan.watermark.limits],
        "pins": list(plan.rules.pins),
        "nothing_to_do": plan.is_empty,
        "dropped": plan.dropped,
        "reasons": dict(plan.reasons),
        "messages_before": sum(one.messages_before for one in plan.segments),
        "messages_after": sum(one.messages_after for one in plan.segments),
        "bytes_before": plan.bytes_before,
        "bytes_after": plan.bytes_after,
        "files_rewritten": len(plan.inputs),
        "bytes_rewritten": sum(file.bytes for file in plan.inputs),
        "segments": [asdict(segment) for segment in plan.segments],
        "active_segment": {"first_id": plan.active_from, "files": list(plan.active_files)},
        "keys": plan.census.keys,
        "keys_as_they_are": plan.census.as_they_are,
        "oldest_purged": _oldest(plan),
    }


def _oldest(plan: CompactionPlan) -> dict[str, Any] | None:
    found = plan.census.oldest_purged
    return None if found is None else msgspec.structs.asdict(found)


def compacted_document(done: Compacted) -> dict[str, Any]:
    """The result of a compaction, as tasks return it."""
    return {
        "pipeline": done.plan.pipeline,
        "plan": done.plan.digest,
        "manifest": done.head.manifest,
        "compacted_below": done.head.compacted_below,
        "messages_before": done.messages_before,
        "messages_after": done.messages_after,
        "bytes_before": done.bytes_before,
        "bytes_after": done.bytes_after,
        "bytes_written": done.bytes_written,
    }


def merge_line(merged: Merged) -> str:
    """The result of a merge, or what the next one would do, as a line."""
    if merged.held_by:
        return f"  small files: {merged.held_by} has the log; nothing was merged"
    if merged.is_nothing:
        return "  small files: nothing to merge"
    return (
        f"  small files: {merged.files_before:,} in {merged.segments_before:,} segments are written as "
        f"{merged.files_after:,} in {merged.segments_after:,} ({merged.bytes_written:,} bytes)"
    )


def plan_lines(plan: CompactionPlan) -> Iterator[str]:
    """The plan as a table, with the limits of the watermark."""
    yield f"{plan.pipeline}: policy {plan.rules.policy}, plan {plan.digest[:12]}"
    yield f"  watermark: messages below id {plan.watermark.id} may go"
    for limit in plan.watermark.limits:
        yield f"    {limit.name}: below {limit.below} (withholds {limit.ids:,} ids)"
    if plan.rules.pins:
        yield f"  pinned: {', '.join(map(str, plan.rules.pins))}"
    if plan.segments:
        yield f"  {'segment':>41}  {'messages':>12} {'after':>12}  {'bytes':>15} {'after, about':>15}"
    for one in plan.segments:
        yield (
            f"  {one.first_id:>20}-{one.last_id:<20}  {one.messages_before:>12,} {one.messages_after:>12,}  "
            f"{one.bytes_before:>15,} {one.bytes_after:>15,}"
        )
    yield f"  active segment, not touched: from id {plan.active_from}, {len(plan.active_files)} files"
    for name, count in plan.reasons.items():
        yield f"  goes: {count:,} {REASONS[name]}"
    if plan.census.as_they_are:
        yield f"  as they are: {plan.census.as_they_are:,} entities whose histories are irregular or pinned"
    if oldest := plan.census.oldest_purged:
        when = datetime.fromtimestamp(oldest.t / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M UTC")
        goes = "goes now" if oldest.goes else "stays"
        yield f"  oldest purged entity still in the log: {oldest.topic}/{oldest.key}, purged {when}, {goes}"
    if plan.is_empty:
        yield "  nothing to do"
    else:
        files = plan.inputs
        size = sum(file.bytes for file in files)
        yield f"  {len(files)} files ({size:,} bytes) are written anew as {len(plan.groups)} or fewer"
