"""Tables and lines for people: what commands about work journals print without ``--json``."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from rich.markup import escape
from rich.table import Table

from tidemark.cli.output.tables import moment
from tidemark.work.model.entry_view import WorkEntry
from tidemark.work.queue.listing import Figures

CUT = 60


def entries_table(entries: Sequence[WorkEntry]) -> Table:
    """One line per entry."""
    table = Table(
        "key", "status", "priority", "process", "owner", "tries", "payload", box=None, pad_edge=False
    )
    for entry in entries:
        tries = f"{entry.timeouts} timeouts, {entry.failures} failures"
        table.add_row(
            _cut(entry.key),
            entry.status,
            str(entry.priority),
            _time(entry.process),
            escape(entry.owner or ""),
            tries,
            _cut(entry.payload),
        )
    return table


def dead_table(letters: Sequence[WorkEntry]) -> Table:
    """One line per dead letter."""
    table = Table("key", "died", "reason", "tries", "last owner", "error", "seen", box=None, pad_edge=False)
    for letter in letters:
        tries = f"{letter.timeouts} timeouts, {letter.failures} failures"
        owner, error = escape(letter.owner or ""), _cut(letter.error or "")
        seen = (
            f"{letter.seen.by}, {_time(letter.seen.at)}: {letter.seen.reason}" if letter.seen else "not yet"
        )
        row = (_cut(letter.key), _time(letter.ended), str(letter.reason), tries, owner, error, _cut(seen))
        table.add_row(*row)
    return table


def dead_lines(letters: Sequence[WorkEntry]) -> list[str]:
    """Dead letters as lines of a plan."""
    return [f"  {_text(one.key)}: {one.reason} ({one.error or 'no error text'})" for one in letters]


def history_table(runs: Sequence[WorkEntry]) -> Table:
    """One line per claim that has ended."""
    table = Table("key", "began", "seconds", "ended as", "owner", "error", box=None, pad_edge=False)
    for run in runs:
        took = f"{(run.ended - run.started).total_seconds():.1f}" if run.ended and run.started else ""
        owner = escape(run.owner or "")
        table.add_row(_cut(run.key), _time(run.started), took, run.status, owner, _cut(run.error or ""))
    return table


def _time(at: datetime | None) -> str:
    return "" if at is None else moment(round(at.timestamp() * 1_000_000))


def figures_lines(found: Figures) -> Iterator[str]:
    """The figures of a journal."""
    paused = f"; paused: {found.paused}" if found.paused is not None else ""
    unseen = f" ({found.unseen} not looked at)" if found.unseen else ""
    yield (
        f"{found.journal}: {found.waiting} waiting ({found.due} due), {found.processing} processing, "
        f"{found.behind} behind them, {found.dead} dead letters{unseen}{paused}"
    )
    if found.by_priority:
        listed = ", ".join(f"{priority}: {count}" for priority, count in found.by_priority.items())
        yield f"  by priority: {listed}"
    if found.oldest_due is not None:
        yield f"  oldest due entry: inserted {moment(found.oldest_due * 1000)}"
    if found.next_look is not None:
        yield f"  next look: {moment(found.next_look * 1000)}"
    yield f"  buckets: {', '.join(f'{name} {state}' for name, state in found.buckets.items()) or 'none yet'}"


def _cut(value: Any) -> str:
    text = _text(value)
    return escape(text if len(text) <= CUT else f"{text[:CUT]}…")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
