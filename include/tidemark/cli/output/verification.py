"""Tables for people: results of verifications, and an entity's history."""

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from tidemark.cli.output.tables import moment
from tidemark.verification.diff import Diff, pointer_rows
from tidemark.verification.journal.history import History
from tidemark.verification.outputs.found import MOST_TOLD, OutputVerification
from tidemark.verification.result import Verification
from tidemark.verification.tally import Counts


def verification_table(found: Verification) -> RenderableType:
    """What was verified, what differs, and what cannot be proved."""
    name = escape(f"{found.pipeline}/{found.writer}")
    shown: list[RenderableType] = [f"[bold]{name}[/bold]  {found.summary} ({found.seconds:.1f} s)"]
    if len(found.topics) > 1:
        shown += ["", _topics(found.topics)]
    if found.differences:
        said = [(one.where, one.what) for one in found.differences]
        shown += ["", _differences(said, found.total)]
    if found.unproven:
        table = Table("topic", "entity", "not provable because", box=None, pad_edge=False)
        for one in found.unproven:
            table.add_row(escape(one.topic), escape(one.key), escape(one.detail or one.reason.value))
        shown += ["", table, *_more(len(found.unproven), sum(found.not_provable.values()))]
    if not found.is_clean:
        rebuild = "Nothing is repaired in place: see docs/verification.md for a rebuild."
        if found.gap:
            rebuild = (
                f"Nothing is repaired in place, and the log is not whole ({escape(found.gap)}), so it cannot "
                "rebuild them whole: see docs/verification.md for what is possible."
            )
        shown += ["", f"[red]The tables do not hold what the log says.[/red] {rebuild}"]
    return Group(*shown)


def output_table(found: OutputVerification, further: str = "") -> RenderableType:
    """What was verified of files or a topic, what differs, and what to do."""
    name = escape(f"{found.pipeline}/{found.writer}")
    shown: list[RenderableType] = [f"[bold]{name}[/bold]  {found.summary} ({found.seconds:.1f} s)"]
    if found.differences:
        told = [(one.where, one.what) for one in found.differences[:MOST_TOLD]]
        shown += ["", _differences(told, len(found.differences))]
    if found.not_provable:
        table = Table("not provable", "because", box=None, pad_edge=False)
        for reason, count in found.not_provable.items():
            table.add_row(f"{count:,}", escape(reason))
        shown += ["", table]
    shown += [escape(said) for said in (found.way, further) if said]
    return Group(*shown)


def diff_table(found: Diff) -> RenderableType:
    """Both keyspaces, what differs, and whether readers may be switched."""
    old, new = found.old, found.new
    head = f"[bold]{escape(found.pipeline)}[/bold]  {old.keyspace} → {new.keyspace} ({found.seconds:.1f} s)"
    pointers = Table("pointer", old.keyspace, new.keyspace, box=None, pad_edge=False)
    for row in pointer_rows(found):
        place = escape(f"{row['topic']}/{row['partition']}")
        pointers.add_row(place, *("–" if row[side] is None else str(row[side]) for side in ("old", "new")))
    shown: list[RenderableType] = [head, "", _topics(found.topics), "", pointers]
    if found.differences:
        said = [(one.where, one.between(old.keyspace, new.keyspace)) for one in found.differences]
        shown += ["", _differences(said, found.total)]
    if found.is_safe:
        return Group(*shown, "", f"Readers may be switched to {new.keyspace}.")
    obstacles = [f"  {escape(obstacle)}" for obstacle in found.obstacles]
    return Group(*shown, "", "[red]Do not switch readers yet:[/red]", *obstacles)


def history_table(found: History) -> RenderableType:
    """An entity's messages, what a reader sees, and which rows are hidden."""
    name = escape(f"{found.topic}: {found.key}")
    steps = Table("id", "offset", "sent", "action", "origin", "", "effect", box=None, pad_edge=False)
    for step in found.steps:
        steps.add_row(
            str(step.id),
            f"{step.partition}/{step.offset}",
            moment(step.timestamp * 1000),
            step.action,
            escape(step.origin or ""),
            step.standing,
            escape(step.effect),
        )
    shown: list[RenderableType] = [f"[bold]{name}[/bold]  {found.total:,} messages"]
    if found.total > len(found.steps):
        shown[0] = f"{shown[0]}, the newest {len(found.steps):,} of them"
    shown += [steps, "", *_visible(found)]
    if found.hidden:
        rows = Table("event", "segment", "offset", "hidden because", box=None, pad_edge=False)
        for row in found.hidden:
            rows.add_row(str(row.seq_nr), str(row.segment), str(row.offset), escape(row.why))
        shown += ["", rows, *_more(len(found.hidden), sum(found.hidden_by.values()))]
    shown += ["", f"Verified up to id {found.position:,}: {escape(found.judged)}"]
    if found.verdict:
        shown += [f"  [red]{escape(one.what)}[/red]" for one in found.verdict.differences]
    return Group(*shown)


def _visible(found: History) -> Iterable[RenderableType]:
    head = found.head
    if head is None:
        yield "Readers see no such entity."
        return
    said = f"Readers see {found.readable:,} events of {head.seq_nr:,}"
    if head.delete_to:
        said += f", deleted up to {head.delete_to:,}"
    if head.expire_on is not None:
        said += f", expires on {head.expire_on}"
    yield f"{said}; segment size {head.segment_size:,}."
    if found.beyond_head:
        yield f"  {found.beyond_head:,} of them are beyond the head; readers get them all the same."


def _topics(topics: Mapping[str, Counts]) -> Table:
    table = Table("topic", "same", "different", "not provable", box=None, pad_edge=False)
    for topic, counts in topics.items():
        table.add_row(escape(topic), f"{counts.same:,}", f"{counts.different:,}", f"{counts.not_provable:,}")
    return table


def _differences(differences: Sequence[tuple[str, str]], total: int) -> RenderableType:
    table = Table("where", "what", box=None, pad_edge=False)
    for where, what in differences:
        table.add_row(escape(where), f"[red]{escape(what)}[/red]")
    return Group(table, *_more(len(differences), total))


def _more(shown: int, total: int) -> Iterable[str]:
    return [f"… and {total - shown:,} more"] if total > shown else []
