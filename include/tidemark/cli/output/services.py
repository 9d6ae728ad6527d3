"""A table for people: the status of the embedded services."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from tidemark.embedded.status import ProgramStatus, uptime

COLOURS = {"running": "green", "stopped": "dim", "died": "red", "silent": "yellow"}


def services_table(lines: Sequence[ProgramStatus]) -> Table:
    """One line per program."""
    table = Table("program", "status", "pid", "port", "for", "memory", box=None, pad_edge=False)
    for line in lines:
        memory = f"{line.memory / 1e6:,.0f} MB" if line.memory else ""
        shown = f"[{COLOURS[line.status]}]{line.status}[/]" + escape(
            f": {line.detail}" if line.detail else ""
        )
        table.add_row(line.program, shown, str(line.pid or ""), str(line.port or ""), uptime(line), memory)
    return table
