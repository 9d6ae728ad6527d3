"""Progress for people: a live line per service on a terminal, else a printed line per change."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from tidemark.embedded.jars.ivy import Fetching

DONE = ("running", "stopped")
EVERY = 25
"""Without a terminal, jars per printed line."""


class Display(Protocol):
    """Where progress is shown."""

    def service(self, name: str, phase: str) -> None:
        """Show the new phase of a service."""

    def fetching(self, step: Fetching) -> None:
        """Show the progress of fetching jars."""


@contextmanager
def display(console: Console) -> Iterator[Display]:
    """The display for this console, while something is in progress."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        SpinnerColumn(finished_text="[green]✓[/]"),
        TextColumn("{task.description:<10}"),
        _PhaseColumn(),
    )
    with Progress(*columns, console=console) as progress:
        yield _Live(progress)


class _Lines:
    def __init__(self, console: Console) -> None:
        self._console, self._printed = console, -EVERY

    def service(self, name: str, phase: str) -> None:
        self._print(f"{name or 'services'}: {phase}")

    def fetching(self, step: Fetching) -> None:
        if step.done >= self._printed + EVERY or self._printed < step.done == step.total:
            self._printed = step.done
            self._print(f"jars: {step.done} of {step.total} {step.artifact}".rstrip())

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)


class _Live:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def service(self, name: str, phase: str) -> None:
        done = int(phase.startswith(DONE))
        self._progress.update(self._task(name or "services", 1), phase=escape(phase), completed=done)

    def fetching(self, step: Fetching) -> None:
        task = self._task("jars", step.total)
        self._progress.update(task, completed=step.done, phase=escape(step.artifact))

    def _task(self, name: str, total: int) -> TaskID:
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total, phase="")
        return self._tasks[name]


class _PhaseColumn(ProgressColumn):
    """The phase; for jars with a bar and counts."""

    def __init__(self) -> None:
        super().__init__()
        self._bar = BarColumn(30)

    def render(self, task: Task) -> RenderableType:
        phase = Text.from_markup(task.fields["phase"])
        if not task.total or task.total == 1:
            return phase
        row = Table.grid(padding=(0, 1))
        row.add_row(self._bar.render(task), f"{task.completed:.0f} of {task.total:.0f}", phase)
        return row
