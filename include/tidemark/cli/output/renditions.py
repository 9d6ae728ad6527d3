"""The table of ``tidemark renditions``."""

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from tidemark.app.renditions.listing import ListedOutput, ListedRendition
from tidemark.cli.output.tables import moment

NEVER_DELIVERED = "nothing was delivered yet: the first run makes its first rendition"


def renditions_table(found: ListedOutput) -> RenderableType:
    """The renditions of one writer, one line each, and what differs from the file below."""
    name = escape(f"{found.pipeline}/{found.writer}")
    if found.frontier is None:
        return f"[bold]{name}[/bold]  {NEVER_DELIVERED}"
    head = f"[bold]{name}[/bold]  readable from {found.since} on, before {found.frontier}"
    columns = ("", "state", "place", "since", "upper", "by", "reason", "evidence")
    table = Table(*columns, box=None, pad_edge=False)
    for one in found.renditions:
        table.add_row(*map(escape, _row(one)))
    further = [
        f"  rendition {one.rendition.number}: {escape(said)}"
        for one in found.renditions
        for said in _remarks(one)
    ]
    return Group(head, table, *further, "")


def _row(one: ListedRendition) -> tuple[str, ...]:
    rendition, signed = one.rendition, one.newest
    return (
        f"{rendition.number}{' *' if one.is_active else ''}",
        rendition.state.value,
        rendition.place,
        str(rendition.since),
        "" if one.upper is None else str(one.upper),
        signed.who,
        signed.why,
        _evidence(one),
    )


def _evidence(one: ListedRendition) -> str:
    found = one.rendition.evidence
    if found is None:
        return "none"
    counts = f", {found.differences} differences explained" if found.differences else ""
    return f"{found.mode}{counts}, up to {moment(found.t)}"


def _remarks(one: ListedRendition) -> list[str]:
    remarks = [one.gate] if one.gate else []
    if one.rendition.taint is not None:
        remarks.append(f"frozen: computing time {one.rendition.taint.t} again gave other rows")
    if one.is_active and one.changes:
        remarks += [f"in the file: {said}" for said in one.changes]
    return remarks
