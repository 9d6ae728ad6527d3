"""``tidemark``: the command line. Parses, calls, prints; everything it does can be done from a DAG too.

An error that a person can put right is one sentence on stderr and exit code 1. Nothing is changed by a
command that was misspelled, and nothing is destroyed without ``--execute``.
"""

import getpass
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from tidemark.cli.gate import app as gate
from tidemark.cli.journal_client import app as journal
from tidemark.cli.log import app as log
from tidemark.cli.offsets import app as offsets
from tidemark.cli.options import Json, PipelineName, WriterName, print_json
from tidemark.cli.services import app as services
from tidemark.cli.work import app as work
from tidemark.errors import TidemarkError

app = typer.Typer(
    name="tidemark",
    help="Keeps a journal that lives in Kafka durable and queryable in Cassandra.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(log, name="log", help="A pipeline's commit log: show, verify, accept.")
app.add_typer(offsets, name="offsets", help="Writers' positions: list, ack, rewind, forget, compact.")
app.add_typer(gate, name="gate", help="Writers' gates: show, stop, open.")
app.add_typer(
    journal, name="journal", help="Journals: append, delete, purge, read, pointer, expired, hand-back."
)
app.add_typer(work, name="work", help="Work journals: insert, claim, done, dead letters, figures.")
app.add_typer(services, name="services", help="Kafka, Cassandra, Spark and Airflow on this machine.")


@app.command()
def pipelines(as_json: Json = False) -> None:
    """List the pipelines, and the files that were refused."""
    from tidemark.cli.tables import pipelines_table
    from tidemark.delivery.pipeline_file import load_pipelines

    loaded = load_pipelines()
    if as_json:
        print_json(
            {
                "pipelines": [pipeline.model_dump(mode="json") for pipeline in loaded.pipelines],
                "refused": [str(refused) for refused in loaded.refused],
            }
        )
    else:
        Console().print(pipelines_table(loaded.pipelines))
        for refused in loaded.refused:
            print(refused, file=sys.stderr)
    raise typer.Exit(1 if loaded.refused else 0)


@app.command()
def status(
    pipeline: Annotated[str | None, typer.Argument(help="Name of a pipeline; all when left out.")] = None,
    as_json: Json = False,
) -> None:
    """Show the log's end, and every writer's position, lag and gate."""
    from tidemark.cli.connections import look_up
    from tidemark.cli.copies import copies_warnings
    from tidemark.cli.tables import status_table
    from tidemark.delivery.addresses import collect_connections
    from tidemark.delivery.pipeline_file import find_pipeline, load_pipelines
    from tidemark.delivery.replicate import look_at_control
    from tidemark.delivery.status import read_status

    chosen = [find_pipeline(pipeline)] if pipeline else list(load_pipelines().pipelines)
    found, warnings = [], []
    for each in chosen:
        connections = collect_connections(each, look_up)
        found.append(read_status(each, look_at_control(connections)))
        warnings.append(copies_warnings(each, connections))
    if as_json:
        whole = [{**each.to_dict(), "warnings": said} for each, said in zip(found, warnings, strict=True)]
        print_json(whole[0] if pipeline else whole)
    else:
        for one, said in zip(found, warnings, strict=True):
            Console().print(status_table(one))
            for line in said:
                typer.echo(f"warning: {line}")


@app.command()
def resume(pipeline: PipelineName, writer: WriterName, as_json: Json = False) -> None:
    """Redeliver to a stopped writer one message at a time; its gate opens where that succeeds."""
    from tidemark.cli.writers import open_pipeline
    from tidemark.verification.resume import resume as resume_writer

    holder = f"tidemark resume by {getpass.getuser()}"
    opened = open_pipeline(pipeline)
    resumed = resume_writer(opened, writer, holder, lambda line: typer.echo(line, err=as_json))
    if as_json:
        print_json({"pipeline": pipeline, "writer": writer, **resumed.to_dict()})
    elif resumed.gate is None:
        typer.echo(f"{pipeline}/{writer}: at id {resumed.position}; the gate is open.")
    else:
        typer.echo(
            f"{pipeline}/{writer}: still stopped at {resumed.gate.where}: {resumed.gate.reason}", err=True
        )
        typer.echo(
            f"Let it pass with: tidemark offsets ack {pipeline} {writer} {resumed.gate.first_id}", err=True
        )
    raise typer.Exit(1 if resumed.gate else 0)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line; errors for people become one sentence and exit code 1."""
    from tidemark.cassandra.session import disconnect_all
    from tidemark.log.errors import LogError

    try:
        app(args=None if argv is None else list(argv))
    except (TidemarkError, LogError) as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    finally:
        disconnect_all()


if __name__ == "__main__":
    main()
