"""``tidemark services``: Kafka, Cassandra, Airflow and Spark on this machine."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from tidemark.embedded import cassandra
from tidemark.embedded.airflow import passwords_file
from tidemark.embedded.class_archive import ensure_class_archive
from tidemark.embedded.home import MARKER, remove_home
from tidemark.embedded.ivy import Fetching
from tidemark.embedded.jars import Conf, ensure_jars
from tidemark.embedded.lifecycle import down as stop_services
from tidemark.embedded.lifecycle import up as start_services
from tidemark.embedded.logs import checked_services, read_log
from tidemark.embedded.status import ProgramStatus, is_healthy, service_status, uptime
from tidemark.settings import Settings

app = typer.Typer(help="Kafka, Cassandra, Airflow and Spark on this machine.", no_args_is_help=True)
COLOURS = {"running": "green", "stopped": "dim", "died": "red", "silent": "yellow"}


@app.command()
def up(
    spark: Annotated[
        Literal["local", "cluster"] | None,
        typer.Option(help="Where Spark runs: inside each application, or as a cluster of three processes."),
    ] = None,
    only: Annotated[str, typer.Option(help="Only these, separated by commas, e.g. kafka,cassandra.")] = "",
    cassandra_heap: Annotated[
        str, typer.Option(envvar="TIDEMARK_CASSANDRA_HEAP", help="Memory for Cassandra, e.g. 1g or 2g.")
    ] = cassandra.HEAP,
) -> None:
    """Start what does not run yet and wait until everything answers."""
    settings = Settings.read()
    names = checked_services([name.strip() for name in only.split(",") if name.strip()])
    console = Console(stderr=True)
    with _progress(console) as show:
        running = start_services(
            settings, names, spark, cassandra_heap=cassandra_heap, report=show.service, fetching=show.fetching
        )
    for name, address in running.addresses.items():
        print(f"{name:<10} {address}")
    if "airflow" in running.addresses:
        print(f"User and password of Airflow: {passwords_file(settings)}")


@app.command()
def down(
    only: Annotated[str, typer.Option(help="Only these, separated by commas.")] = "",
) -> None:
    """Stop everything this home runs. Data stays."""
    names = checked_services([name.strip() for name in only.split(",") if name.strip()])
    console = Console(stderr=True)
    with _progress(console) as show:
        ended = stop_services(Settings.read(), names, show.service)
    print(f"{ended} processes stopped." if ended else "Nothing was running.")


@app.command()
def status(as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """What runs, where and since when. Exit code 0 only if everything that was started is healthy."""
    settings = Settings.read()
    lines = service_status(settings)
    if as_json:
        print(
            json.dumps({"home": str(settings.home), "services": [line.as_dict() for line in lines]}, indent=2)
        )
    else:
        Console().print(_table(lines))
    raise typer.Exit(0 if is_healthy(lines) else 1)


@app.command()
def logs(
    service: Annotated[str, typer.Argument(help="kafka, cassandra, airflow-scheduler, …")],
    lines: Annotated[int, typer.Option("-n", "--lines", min=1, help="How many lines.")] = 50,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on with new lines until Ctrl-C.")
    ] = False,
) -> None:
    """The last lines of a service's log."""
    try:
        for line in read_log(Settings.read(), service, lines, follow):
            print(line, flush=follow)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


@app.command()
def fetch(
    only: Annotated[Conf | None, typer.Option(help="Only these jars.")] = None,
    verify: Annotated[bool, typer.Option(help="Compare the digest of every jar, not only its size.")] = False,
) -> None:
    """Fetch the jars of the services, so that `up` need not."""
    with _progress(Console(stderr=True)) as show:
        jars = ensure_jars(Settings.read(), only, show.fetching, verify=verify)
    print(jars.folder)


@app.command()
def warm() -> None:
    """Archive Spark's classes, so that every application starts in half the time. Takes about a minute, once."""
    with Console(stderr=True).status("archiving Spark's classes"):
        print(ensure_class_archive(Settings.read()))


@app.command()
def clean(
    execute: Annotated[bool, typer.Option(help="Do it, instead of saying what would be done.")] = False,
) -> None:
    """Stop everything and remove all data of this home. The fetched jars stay."""
    settings = Settings.read()
    if not settings.home.exists():
        print(f"{settings.home} does not exist: nothing to remove.")
        return
    running = [line.program for line in service_status(settings) if line.pid and line.status != "died"]
    print(f"Stop: {', '.join(running) or 'nothing runs'}")
    print(f"Remove: {settings.home} ({_size(settings.home) / 1e6:,.0f} MB)")
    if not execute:
        print("Nothing was changed. Add --execute to do it.")
        return
    if (settings.home / MARKER).is_file():
        stop_services(settings)
    remove_home(settings)
    print("Done.")


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() or path.is_symlink())


def _table(lines: list[ProgramStatus]) -> Table:
    table = Table("program", "status", "pid", "port", "for", "memory", box=None, pad_edge=False)
    for line in lines:
        colour = COLOURS[line.status]
        memory = f"{line.memory / 1e6:,.0f} MB" if line.memory else ""
        shown = f"[{colour}]{line.status}[/]" + (f" ({line.detail})" if line.detail else "")
        table.add_row(line.program, shown, str(line.pid or ""), str(line.port or ""), uptime(line), memory)
    return table


class _Show:
    """Progress for people: bars on a terminal, a line per change elsewhere."""

    def __init__(self, console: Console, progress: Progress | None) -> None:
        self._console, self._progress = console, progress
        self._tasks: dict[str, int] = {}
        self._printed = 0

    def service(self, name: str, phase: str) -> None:
        """A service has come to a new phase."""
        done = phase.startswith("running")
        if self._progress is None:
            self._console.print(f"{name or 'services'}: {phase}", highlight=False)
        else:
            self._progress.update(self._task(name or "services", 1), phase=phase, completed=int(done))

    def fetching(self, step: Fetching) -> None:
        """A jar is on its way or has come."""
        if self._progress is not None:
            task = self._task("jars", step.total)
            self._progress.update(task, completed=step.done, phase=step.artifact or "")
        elif step.done == step.total or step.done >= self._printed + 25 or not self._tasks:
            self._tasks["jars"], self._printed = 0, step.done
            self._console.print(
                f"jars: {step.done} of {step.total} {step.artifact}".rstrip(), highlight=False
            )

    def _task(self, name: str, total: int) -> int:
        assert self._progress is not None
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total, phase="")
        return self._tasks[name]


@contextmanager
def _progress(console: Console) -> Iterator[_Show]:
    if not console.is_terminal:
        yield _Show(console, None)
        return
    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[phase]}"),
    )
    with Progress(*columns, console=console) as progress:
        yield _Show(console, progress)
